"""Assignments: what students get, and how their work is graded (book/classroom.md)."""
