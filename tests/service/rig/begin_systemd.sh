#!/bin/sh
# Becomes a systemd of its own for one user, apart from the computer's:
#   begin_systemd.sh NAME
# Run it in a mount namespace of its own, with HOME and XDG_RUNTIME_DIR set.
set -eu
# systemd serves users only where it believes that systemd runs the computer.
mkdir -p /run/systemd
mount -t tmpfs tmpfs /run/systemd
mkdir /run/systemd/system
# It needs a control group that it may divide.
for tree in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
    [ -e "$tree/cgroup.procs" ] || continue
    mkdir "$tree/$1"
    echo $$ > "$tree/$1/cgroup.procs"
done
exec /lib/systemd/systemd --user --log-target=console
