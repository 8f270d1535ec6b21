# Keeps one nginx for a test process, and outlives it by as long as it takes to clean up.
#
#   nginx.sh FOLDER PROGRAM
#
# Obeys lines on standard input and answers each with one on standard output. When the input ends, because the test process closed it
# or died in any way, the server is stopped and the folder removed. Signals that a terminal sends to everybody are left to the test.
trap '' HUP INT TERM
folder=$1 program=$2
server=

is_running() { [ -n "$server" ] && kill -0 "$server" 2>/dev/null; }

stop() {
    if is_running; then
        kill -s TERM "$server"
        wait "$server"
    fi
    server=
    rm -f "$folder/pid"
}

# The file with its number is written when its sockets are open. --pdeathsig: should somebody kill the keeper, the server goes too.
start() {
    (
        trap - HUP INT TERM
        exec setpriv --pdeathsig TERM -- "$program" -p "$folder" -e "$folder/log" -c "$folder/nginx.conf"
    ) </dev/null >>"$folder/log" 2>&1 &
    server=$!
    while ! [ -s "$folder/pid" ]; do
        is_running || { wait "$server"; server=; echo failed; return; }
        sleep 0.02
    done
    echo ready
}

while read -r order; do
    case $order in
        start) start ;;
        stop) stop; echo stopped ;;
        *) echo "unknown order: $order" ;;
    esac
done
stop
rm -rf "$folder"
