# Folders that a command asks for, in a child inside the sandbox.

# Makes a folder and those above it, and goes there. What is no folder is in the way, unless it may be replaced.
sub make_folder {
  my ($path, $is_replacing) = @_;
  chdir '/';
  for my $name (names_of($path)) {
    next if chdir $name;
    unlink $name if $is_replacing;
    mkdir $name, 0755 or $! == EEXIST or give_up(1, "cannot make $path: $!");
    chdir $name or give_up(1, "cannot enter $path: $!");
  }
}

# Puts a fresh folder in the place of whatever is there: a link is replaced, not followed.
sub empty_folder {
  my ($path) = @_;
  my ($last, @above) = reverse names_of($path);
  give_up(1, 'cannot empty the root') if !defined $last;
  make_folder(join('/', reverse @above), 1);
  if (lstat $last && -d _) {
    chdir $last or give_up(1, "cannot enter $path: $!");
    empty_here($path);
    chdir '..' or give_up(1, "cannot leave $path: $!");
    rmdir $last or give_up(1, "cannot replace $path: $!");
  } elsif (-e _ || -l _) {
    unlink $last or give_up(1, "cannot replace $path: $!");
  }
  mkdir $last, 0755 or give_up(1, "cannot make $path: $!");
}

# What is there, with all it holds. Something that is gone already, or a mount, stays as it is.
sub remove_path {
  my ($path) = @_;
  my ($last, @above) = reverse names_of($path);
  chdir '/';
  for my $name (reverse @above) { return if -l $name || !chdir $name }
  return if !defined $last || unlink $last || !lstat $last || !-d _ || rmdir $last || !chdir $last;
  empty_here($path);
  rmdir $last if chdir '..';
}

# Step by step and without a path, because a tree may be deeper than any path is long.
sub empty_here {
  my ($path) = @_;
  my $depth = 0;
  while (1) {
    my $full = remove_entries($path);
    if (defined $full) {
      chdir $full or give_up(1, "cannot empty $path: $!");
      $depth++;
    } elsif ($depth > 0) {
      chdir '..' or give_up(1, "cannot empty $path: $!");
      $depth--;
    } else {
      return;
    }
  }
}

# @returns the name of a folder that has to be emptied first, undef when nothing is left
sub remove_entries {
  my ($path) = @_;
  opendir my $entries, '.' or give_up(1, "cannot empty $path: $!");
  while (defined(my $name = readdir $entries)) {
    next if $name eq '.' || $name eq '..' || unlink $name;
    my $reason = "$!";
    next if !lstat $name;
    give_up(1, "cannot empty $path: $reason") if !-d _;
    next if rmdir $name;
    # Anything else would be the same after it was emptied: a mount, for one.
    give_up(1, "cannot empty $path: $!") if $! != ENOTEMPTY && $! != EEXIST;
    return $name;
  }
  return undef;
}

sub names_of {
  my ($path) = @_;
  return grep { $_ ne '' && $_ ne '.' } split m{/}, $path;
}
