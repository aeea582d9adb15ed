#!/bin/sh
# The full lane of emulators, one part after the other whatever becomes of the one before: the definitions in LocalStack's
# interpreter, the deployment in MiniStack with real containers, the store on a real S3 server. Each part says what it
# skips and why; the last lines say how each part ended. Exits with 0 when none failed.
cd "$(dirname "$0")/../.." || exit 1
status=0 summary=''

# part NAME WORD…   runs it
part() {
  name=$1 began=$(date +%s)
  shift
  echo "== $name"
  if "$@"; then end=passed; else end=FAILED status=1; fi
  summary="$summary$name: $end in $(($(date +%s) - began)) s
"
}

# Another emulator would answer instead of those that are meant here.
unset AWS_ENDPOINT_URL
vitest=node_modules/.bin/vitest
part 'the definitions in LocalStack' env T1_EMULATOR=localstack $vitest run --project emulators
part 'the deployment in MiniStack, tasks as containers' env T1_EMULATOR=ministack-docker $vitest run --project emulators
part 'the store on SeaweedFS' $vitest run --project long src/store/s3

printf '==\n%s' "$summary"
exit $status
