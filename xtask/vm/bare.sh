#!/bin/busybox sh
# The first process of a machine whose root holds busybox, an unpacked archive, and nothing else.
#
# Checks what the program out of the archive does there. What is said begins with `bare: `: a line for each check, and in
# the end one that tells how many failed.

/bin/busybox --install -s /bin
export PATH=/bin
cd /nntrace-bpf-* || exit 1
program=$PWD/nntrace-bpf
tracing=/sys/kernel/tracing
failed=0
mkdir -p /tmp

# check NAME FUNCTION: says how it went, and if it failed, what the program had said.
check() {
	why=
	if "$2"; then
		echo "bare: $1 passed"
	else
		failed=$((failed + 1))
		tail -n 20 /tmp/out /tmp/err
		echo "bare: $1 FAILED: $why"
	fi
}

# because REASON: why the check fails.
because() {
	why=$1
	return 1
}

# ours STATUS ARGUMENTS..: the program ends with this status, without a panic.
ours() {
	wanted=$1
	shift
	"$program" "$@" >/tmp/out 2>/tmp/err
	status=$?
	! grep -q panicked /tmp/err || because "it panicked" || return 1
	[ $status -eq "$wanted" ] || because "$*: status $status instead of $wanted"
}

# says FILE PATTERN: the program wrote a line like this.
says() {
	grep -q -- "$2" "$1" || because "no line like $2"
}

# part PATTERN: what there is like this in a snapshot.
part() {
	tr -d ' \n' </tmp/out | grep -o -- "$1"
}

# numbers KEY: the values of it in what is read.
numbers() {
	grep -o "\"$1\":[0-9]*" | cut -d : -f 2
}

# A snapshot in which CPUs slept at least half of the time: nothing else runs here.
slept() {
	window=$(part '"window":{[^}]*}')
	begin=$(echo "$window" | numbers begin_ns)
	end=$(echo "$window" | numbers end_ns)
	window=$((${end:-0} - ${begin:-0}))
	cpus=$(part '"cpus":\[{"cpu":.*"clusters":')
	count=$(echo "$cpus" | numbers cpu | wc -l)
	idle=$(echo "$cpus" | grep -o '"idle":\[[^]]*\]' | numbers ns | awk '{ sum += $1 } END { printf "%.0f", sum }')
	[ $count -gt 0 ] && [ $window -gt 0 ] || because "no CPUs, or no time" || return 1
	share=$((100 * idle / (count * window)))
	[ $share -ge 50 ] && [ $share -le 100 ] || because "$count CPUs slept $share % of the time"
}

# counted NAME COUNT: a snapshot in which a function ran that often.
counted() {
	count=$(part '"functions":\[[^]]*\]' | grep -o "\"name\":\"$1\",\"count\":[0-9]*" | numbers count)
	[ "$count" = "$2" ] || because "$1 ran ${count:-0} times instead of $2"
}

# What a program under test does: five sections.
marks='for i in 1 2 3 4 5; do
	echo "B|$$|[NN_LR_PE]run" >/sys/kernel/tracing/trace_marker
	usleep 1000
	echo "E|$$" >/sys/kernel/tracing/trace_marker
done'

version() {
	ours 0 --version || return 1
	# The folder is called by program, version and machine.
	[ "$(cat /tmp/out)" = "$(basename "$PWD" | sed 's/^\(.*\)-\([^-]*\)-[^-]*-linux$/\1 \2/')" ] ||
		because "it is not the version that the folder is called by"
}
help() { ours 0 --help && says /tmp/out '--duration'; }
manual() { ours 0 man && cmp -s /tmp/out man/nntrace-bpf.1 || because "${why:-the manual is another than the one beside it}"; }
completions() {
	for file in completions/nntrace-bpf.bash:bash completions/_nntrace-bpf:zsh completions/nntrace-bpf.fish:fish; do
		ours 0 completions "${file#*:}" || return 1
		cmp -s /tmp/out "${file%:*}" || because "${file%:*} is another" || return 1
	done
}
wrong_use() {
	ours 2 --no-such-option && says /tmp/err 'no-such-option' &&
		ours 2 --duration soon && says /tmp/err 'soon' &&
		ours 1 replay /nowhere && says /tmp/err '/nowhere'
}
power() { ours 0 --marks none --duration 500ms --json && slept; }
marks_need_tracefs() {
	ours 1 --marks syscall --duration 300ms --json -- /bin/true && says /tmp/err "mount -t tracefs tracefs $tracing"
}
strict() {
	sysctl -w kernel.perf_event_paranoid=3 >/tmp/out && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 3 ] ||
		because "perf_event_paranoid cannot be set" || return 1
	power
}
marked() { ours 0 --marks syscall --json -- /bin/busybox sh -c "$marks" && counted run 5; }
replayed() {
	echo 1 >$tracing/events/power/cpu_idle/enable
	echo >$tracing/trace
	sh -c "$marks"
	sleep 1
	echo 0 >$tracing/tracing_on
	cat $tracing/trace >/tmp/trace.txt
	ours 0 replay /tmp/trace.txt --json && counted run 5 && slept
}
topology() { ours 0 topology && says /tmp/out '^\[\[cluster\]\]'; }

# The firmware's last line may have no end.
echo
# Before anything is mounted.
check version version
check help help
check manual manual
check completions completions
check 'wrong use' wrong_use

mkdir -p /proc /sys /dev
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
echo "bare: $(uname -m), Linux $(uname -r), $(nproc) CPUs"

check 'topology' topology
check 'power states without tracefs' power
check 'marks without tracefs' marks_need_tracefs

mount -t tracefs tracefs $tracing
check 'power states' power
check 'power states, perf_event_paranoid=3' strict
check 'marks of a program' marked
check 'replay' replayed

if [ $failed -eq 0 ]; then
	echo 'bare: all passed'
else
	echo "bare: $failed failed"
fi
poweroff -f
