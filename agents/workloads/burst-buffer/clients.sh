#!/bin/sh
# Run a command on several client hosts of a data node at the same time: clients.sh NUMBER TOKEN DIRECTORY COMMAND...
#
# `burst run --listen 0.0.0.0:7000` starts this script on the data node, which is a network namespace. Each client is
# another namespace that reaches only the data node, and ends with its command. The last argument of the command is a
# folder of the client's own below DIRECTORY.
set -eu

number=$1 token=$2 directory=$3
shift 3
clients=
for client in $(seq "$number"); do
    folder=$directory/client$client
    mkdir "$folder"
    BURST_NODE=10.77.$client.1:7000 BURST_TOKEN=$token unshare --net sh -euc '
        until ip address add "$1" dev node 2>/dev/null; do sleep 0.01; done
        ip link set node up
        shift
        exec "$@"
    ' sh "10.77.$client.2/24" "$@" "$folder" &
    clients="$clients $!"
    until [ "$(readlink "/proc/$!/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
    ip link add "client$client" type veth peer name node netns $!
    ip address add "10.77.$client.1/24" dev "client$client"
    ip link set "client$client" up
done
for client in $clients; do
    wait "$client"
done
