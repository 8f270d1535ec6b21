# Keeps one S3 server for a test process, and outlives it by as long as it takes to clean up.
#
#   s3.sh FOLDER PROGRAM
#
# Obeys lines on standard input and answers each with one on standard output. When the input ends, because the test process closed it
# or died in any way, the server is stopped and the folder removed. Signals that a terminal sends to everybody are left to the test.
trap '' HUP INT TERM
folder=$1 program=$2
server=

is_running() { [ -n "$server" ] && kill -0 "$server" 2>/dev/null; }

stop() {
    if is_running; then
        kill -s KILL "$server"
        wait "$server" 2>/dev/null
    fi
    server=
}

# --pdeathsig: should somebody kill the keeper, the server goes too.
start() {
    (
        trap - HUP INT TERM
        exec setpriv --pdeathsig KILL -- "$program" --port "127.0.0.1:$1" --quiet posix --sidecar "$folder/sidecar" "$folder/buckets"
    ) </dev/null >>"$folder/log" 2>&1 &
    server=$!
}

while read -r order port; do
    case $order in
        start) start "$port"; echo started ;;
        look) sleep 0.05; if is_running; then echo running; else echo ended; fi ;;
        stop) stop; echo stopped ;;
        *) echo "unknown order: $order" ;;
    esac
done
stop
rm -rf "$folder"
