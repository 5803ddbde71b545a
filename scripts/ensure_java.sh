#!/usr/bin/env bash
# Prints the home of a Java 17 or 21 that Flink and Spark run on: JAVA_HOME, the one on the PATH, one in
# /usr/lib/jvm, or one that apt installs now. Exit 2 with one sentence where there is none.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Prints the home of the given java if it will do. Spark 4 needs the module; trimmed runtimes lack it.
home_of() {
    local java=$1 settings
    settings=$("$java" -XshowSettings:properties -version 2>&1) || return 1
    grep -qE '^ *java\.specification\.version = (17|21)$' <<<"$settings" || return 1
    "$java" --list-modules 2>/dev/null | grep -q '^jdk\.incubator\.vector' || return 1
    sed -n 's/^ *java\.home = //p' <<<"$settings"
}

find_home() {
    local java
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [ -x "$java" ] && home_of "$java"; then
            return 0
        fi
    done
    return 1
}

if find_home; then
    exit 0
fi
echo "No Java 17 or 21 was found; trying to install one with apt." >&2
if "$here/apt_install.sh" openjdk-17-jre-headless openjdk-21-jre-headless && find_home; then
    exit 0
fi
echo "Flink and Spark need a Java 17 or 21 (with the module jdk.incubator.vector): install one, for example" \
    "openjdk-17-jre-headless, and put it on the PATH or name it with JAVA_HOME." >&2
exit 2
