# Starts sandboxes and lets commands into them.
#
# In Perl: Node can call neither fork(2) nor setns(2), a compiled helper would need a compiler or a binary for every
# machine, and in a chain of shell tools (prlimit, nsenter, setpriv, chroot, sh) each program costs as much as the
# command itself. Debian and Ubuntu have perl-base on every machine; nothing beyond it is used.
#
# Three kinds of processes:
#   the spawner, one per driver, is small, so that its forks are cheap; it makes named pipes and starts entry processes;
#   an entry process, one per sandbox, starts bwrap, enters all namespaces of it, and makes a child for each command. Only these
#     children are inside the pid namespace: no command can see, signal or trace an entry process. When it ends, by whatever,
#     the spawner closes the pipe that bwrap waits on, and with bwrap ends everything inside;
#   a child, one per command, gives up all powers that commands do not have, and becomes the command.
#
# What must always hold:
#   no program is executed between setns and the loss of the powers, so nothing the agent wrote, preloaded libraries
#     least of all, ever runs with them; and after setns perl loads no file (@INC is empty);
#   a command inherits three descriptors and nothing else of ours.
#
# A request is its length and then its fields, each after its own length (all in 4 bytes, big-endian). An answer is a
# line, written at once, so that lines of several processes never mix.
#
#   serve MACHINE FOLDER BWRAP PROBE          the spawner; the folder holds the named pipes
#   enter MACHINE PROBE PID STARTED UID GID NETWORK OWNERS CWD COUNT VARIABLE… WORD…   one program in a terminal, as a
#                                           child of this
#
# MACHINE is Node's name for the architecture. PROBE is a path that exists only in a finished sandbox.
use strict;
use warnings;
@INC = ();

# Else the whole text of this program would be seen inside as the command line of a child that is about to execute.
$0 = 't1';

my ($mode, $machine, @arguments) = @ARGV;

# What an entry process knows of itself and of its sandbox.
my ($entry, $folder_fd, $nothing_fd, $changes_fd, $stat, $oom_score);
# For the system calls of become: which process, what it may do, and its limits.
my ($this_process, $kept_capabilities, $process_limit, $memory_limit);
# Of a sandbox whose commands may have this machine's network: its process 1, by which the others enter their own.
my $network_fd;
# Whether giving a file to another user is accepted without effect, rather than refused (ignore_owners).
my $is_ignoring_owners = 0;

sub main {
  umask 022;
  # Not ignored, which programs would inherit; perl itself ignores the second.
  $SIG{$_} = sub { } for qw(PIPE FPE);
  if ($mode eq 'serve') { serve(@arguments) } else { enter(@arguments) }
}
