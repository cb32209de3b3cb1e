"""Random programs: drawn, run everywhere, judged, made small."""
