# Keeps one PostgreSQL server for a test process, and outlives it by as long as it takes to clean up.
#
#   postgres.sh FOLDER ACCOUNT BIN
#
# Obeys lines on standard input and answers each with one on standard output. When the input ends, because the test process closed it
# or died in any way, the server is stopped and the folder removed. Signals that a terminal sends to everybody are left to the test.
trap '' HUP INT TERM
folder=$1 account=$2 bin=$3
server=

# The server and initdb refuse to be root. --pdeathsig: should somebody kill the keeper, the server goes too.
as_account() {
    if [ -n "$account" ]; then
        exec setpriv --reuid "$account" --regid "$(id -g "$account")" --clear-groups --pdeathsig QUIT -- "$@"
    else
        exec setpriv --pdeathsig QUIT -- "$@"
    fi
}

# The signals are ignored by children as well, and a server that ignores them cannot be stopped.
alone() { (trap - HUP INT TERM; cd "$folder" && as_account "$@"); }

is_running() { [ -n "$server" ] && kill -0 "$server" 2>/dev/null; }

# stop SIGNAL
stop() {
    if is_running; then
        kill -s "$1" "$server"
        wait "$server"
    fi
    server=
}

start() {
    rm -f "$folder/data/postmaster.pid"
    (trap - HUP INT TERM; cd "$folder" && as_account "$bin/postgres" -D "$folder/data") </dev/null >>"$folder/log" 2>&1 &
    server=$!
    while ! grep -qsE '^(ready|standby)' "$folder/data/postmaster.pid"; do
        is_running || { wait "$server"; server=; echo failed; return; }
        sleep 0.02
    done
    echo ready
}

while read -r order; do
    case $order in
        initdb*)
            if alone "$bin/initdb" -D "$folder/data" ${order#initdb} </dev/null >>"$folder/log" 2>&1; then echo made; else echo failed; fi
            ;;
        copy*)
            if alone "$bin/pg_basebackup" -D "$folder/data" ${order#copy} </dev/null >>"$folder/log" 2>&1; then echo made; else echo failed; fi
            ;;
        start) start ;;
        stop*) stop "${order#stop }"; echo stopped ;;
        *) echo "unknown order: $order" ;;
    esac
done
stop QUIT
rm -rf "$folder"
