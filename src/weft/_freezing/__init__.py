"""Freezing: what PyInstaller must know of weft to put it into an application.

PyInstaller finds the hooks through the entry point `pyinstaller40` of the installed package.
"""

from __future__ import annotations

from pathlib import Path


def hook_folders() -> list[str]:
    """The folders of PyInstaller's hooks."""
    return [str(Path(__file__).parent)]
