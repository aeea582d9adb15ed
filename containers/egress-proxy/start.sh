#!/bin/sh
# Domains in squid's form: `example.org` is the name itself, `.example.org` includes all names below it.
set -eu
: "${T1_ALLOWED_DOMAINS:?expected domains with commas, e.g. pypi.org,.pythonhosted.org}"
printf '%s\n' "$T1_ALLOWED_DOMAINS" | tr , '\n' > /tmp/t1-allowed-domains
exec squid -N -f "${T1_SQUID_CONF:-/etc/squid/squid.conf}"
