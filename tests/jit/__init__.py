"""Tests of script and trace, stage by stage."""
