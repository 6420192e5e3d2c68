"""Federations of organisations over NVFlare: kits, rosters, owners that answer, the coordinator's job.

Only `nvflare_components`, `owner_daemon` and `session` import NVFlare; what an owner decides (`owner_site`, `journal`,
`roster`) does not, and is tested without it.
"""
