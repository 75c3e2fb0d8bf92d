#!/bin/sh
# Starts systemd as the first process of namespaces of its own. It takes a folder of
# units, which are all that it knows: what a machine starts by itself, such as the
# cleaning of /tmp, is none of them.
set -e
units=$1
for controller in "" /devices /pids /systemd /unified; do
    parent=/sys/fs/cgroup$controller
    if [ -e "$parent/cgroup.procs" ]; then
        mkdir -p "$parent/warpbook-test"
        echo $$ > "$parent/warpbook-test/cgroup.procs"
    fi
done
# shellcheck disable=SC2016
exec unshare --pid --mount --fork --kill-child --cgroup --ipc sh -ec '
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/systemd /run/lock /run/dbus
    mount -t proc proc /proc
    # systemd mounts what this kernel has, with our part of it as the root
    umount -l /sys/fs/cgroup
    export container=lxc SYSTEMD_UNIT_PATH="$0"
    exec /lib/systemd/systemd --system --unit=machine.target --log-target=console
' "$units"
