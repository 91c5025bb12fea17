"""Programs and machine code on disk, so that a second process compiles nothing.

files     folders of this user, and files with digests in them
walk      everything that a program depends on: its digest is the name of the file
reads     what the frontend read, to compare with the walk
entry     a program as bytes, with what it needs of the process
cached_programs
          functions that were found, and what is kept of those that were not
"""
