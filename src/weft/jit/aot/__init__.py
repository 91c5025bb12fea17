"""Compilation ahead of time: programs as files that libweft runs without Python."""
