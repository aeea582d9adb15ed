# System calls that commands make to no effect, or not at all.

# add_key, request_key and keyctl, by every way into the kernel (AUDIT_ARCH of linux/audit.h): the machine's own, its
# programs of 32 bits, and x32, whose numbers are those of x64 and a bit.
my %KEY_CALLS = (
  x64 => {0xC000003E => [248 .. 250, 0x40000000 + 248 .. 0x40000000 + 250], 0x40000003 => [286 .. 288]},
  arm64 => {0xC00000B7 => [217 .. 219], 0x40000028 => [309 .. 311]},
);

# From here on, giving a file to somebody else succeeds and does nothing. One user is mapped, so it cannot be done; but
# package managers and tar stop at an error, and in a sandbox in which everybody is root nothing depends on it.
sub ignore_owners {
  answer_calls(0, $NUMBER->{AUDIT_ARCH} => [grep { defined } @$NUMBER{'chown', 'fchown', 'lchown', 'fchownat'}]);
}

# From here on the kernel has no keys. They are of the machine's user and not of a namespace: /proc/keys would show the
# names of those of other sandboxes, and whoever lets others read a key hands it over.
sub refuse_keys { answer_calls(ENOSYS, %{$KEY_CALLS{$machine}}) }

# Filters as in linux/bpf_common.h (load a word, jump if equal, return) over struct seccomp_data of linux/seccomp.h.
sub answer_calls {
  use constant { LOAD => 0x20, JUMP_EQUAL => 0x15, RETURN => 0x06, AT_NUMBER => 0, AT_ARCH => 4 };
  use constant { SECCOMP_RET_ERRNO => 0x00050000, SECCOMP_RET_ALLOW => 0x7fff0000 };
  my ($error, %calls_of) = @_;
  my @steps;
  for my $arch (sort keys %calls_of) {
    my @calls = @{$calls_of{$arch}};
    push @steps, [LOAD, 0, 0, AT_ARCH], [JUMP_EQUAL, 0, @calls + 3, $arch], [LOAD, 0, 0, AT_NUMBER];
    push @steps, [JUMP_EQUAL, @calls - $_, 0, $calls[$_]] for 0 .. $#calls;
    push @steps, [RETURN, 0, 0, SECCOMP_RET_ALLOW], [RETURN, 0, 0, SECCOMP_RET_ERRNO | $error];
  }
  push @steps, [RETURN, 0, 0, SECCOMP_RET_ALLOW];
  my $filter = join '', map { pack 'SCCL', @$_ } @steps;
  my $program = pack 'S x6 P', scalar @steps, $filter;
  sys('prctl', PR_SET_SECCOMP, SECCOMP_MODE_FILTER, $program, 0, 0) == 0
    or give_up(NOT_USABLE, "cannot filter system calls: $!");
}
