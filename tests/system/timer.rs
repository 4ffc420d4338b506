//! `hf-watchdog --install cron` with the real crontab and the real cron daemon. Both run in namespaces of their own, with
//! an empty spool: the crontabs of this machine are neither read nor changed, and every process ends with the test.

use std::path::Path;
use std::process::Command;

use crate::machine::{Need, can, short};
use crate::test_vault::{TestVault, binary};

const DAEMONS: &[&str] = &["/usr/sbin/cron", "/usr/sbin/crond"];

/// Runs as the first process of the namespaces. `$1` is a directory for everything, `$2` the daemon.
const WORLD: &str = r#"
set -eu
cd "$1"
mkdir spool
chmod 1730 spool
chgrp crontab spool 2>/dev/null || true
for dir in /var/spool/cron/crontabs /var/spool/cron; do
    if [ -d "$dir" ]; then mount --bind spool "$dir" && break; fi
done
mount -t tmpfs none /run
[ ! -d /etc/cron.d ] || mount -t tmpfs none /etc/cron.d
[ ! -f /etc/crontab ] || mount --bind /dev/null /etc/crontab
if [ -x /usr/sbin/sendmail ]; then
    printf '#!/bin/sh\ncat >>"%s/mail"\n' "$1" >sendmail
    chmod 755 sendmail
    mount --bind sendmail /usr/sbin/sendmail
fi
fail() { echo "FAILED: $*"; cat reply; crontab -l; exit 1; }
expect() { # EXIT STATUS ARGUMENT...
    local exit=$1 status=$2 code=0
    shift 2
    hf-watchdog "$@" >reply 2>&1 || code=$?
    [ "$code" = "$exit" ] && grep -qx "STATUS:$status" reply || fail "hf-watchdog $* exits $code"
}

mkdir "a 50% \$HOME it's"
cd "a 50% \$HOME it's"
vault=$PWD/Vault
hf-init >/dev/null
ln -s "$1/reply" reply
printf '# mine\n0 0 1 1 * true \\%% x\n' | crontab -
crontab -l >"$1/before"

# The real crontab, and no daemon yet.
expect 1 NOT_INSTALLED --installed
expect 1 INCOMPLETE --install cron
grep -q '^CHECK:service failed no cron daemon runs' reply || fail 'a daemon that does not run'
crontab -l >"$1/after"
expect 1 INCOMPLETE --install cron
crontab -l | cmp - "$1/after" || fail 'twice is not the same as once'
head -n 2 "$1/after" | cmp - "$1/before" || fail 'the other lines changed'
expect 0 UNINSTALLED --uninstall cron
crontab -l | cmp - "$1/before" || fail 'something is left'

# A second vault that is gone when its time comes.
mkdir "$1/gone"
(cd "$1/gone" && hf-init >/dev/null && hf-watchdog --install cron >/dev/null) || true
rm -rf "$1/gone"
# Before the daemon starts: it does not see a change in the second in which it reads the spool.
expect 1 INCOMPLETE --install cron
"$2" -f &
until grep -qsx 'crond\?' /proc/[0-9]*/comm; do sleep 0.01; done
expect 0 INSTALLED --install cron
[ "$(crontab -l | wc -l)" = 4 ] || fail 'the entry of the other vault is gone'
for second in $(seq 65); do
    [ ! -f Vault/Akashic/watchdog.json ] || break
    sleep 1
done
[ -f Vault/Akashic/watchdog.json ] || fail 'no tick'
expect 0 INSTALLED --installed
grep -q '^CHECK:last_tick ok ' reply || fail 'the tick is not seen'
if [ -x /usr/sbin/sendmail ]; then
    for second in $(seq 50); do
        ! grep -qs '^STATUS:NO_VAULT' "$1/mail" || break
        sleep 0.1
    done
    grep -qs '^STATUS:NO_VAULT' "$1/mail" || fail 'the error of the other vault was not mailed'
    ! grep -q "$vault" "$1/mail" || fail 'a healthy tick was mailed'
    [ "$(grep -c ^EXIT: "$1/mail")" = 1 ] || fail 'more was mailed than one error'
    echo MAILED
fi
expect 0 UNINSTALLED --uninstall cron --vault "$1/gone/Vault"
expect 0 UNINSTALLED --uninstall cron
crontab -l | cmp - "$1/before" || fail 'something is left'
echo TICKED
"#;

#[test]
fn cron_runs_the_entry_and_mails_errors_only() {
    if short() {
        // cron lets it wait for the next minute.
        return;
    }
    let needs = [Need::Root, Need::Mount, Need::Tool("crontab"), Need::Tool("unshare")];
    if !can("a timer of cron", &needs) {
        return;
    }
    let Some(daemon) = DAEMONS.iter().find(|path| Path::new(path).exists()) else {
        println!("CANNOT test a timer of cron here: no cron daemon is installed");
        return;
    };
    let hive = TestVault::empty();
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", binary("").parent().expect("a directory").display());
    let mut world = Command::new("unshare");
    world.args(["--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    world.args(["bash", "-c", WORLD, "world"]).arg(hive.dir()).arg(daemon);
    let ran = world.env_clear().env("PATH", path).env("HOME", hive.user_home()).env("USER", "root").output();
    let ran = ran.expect("unshare runs");
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && printed.contains("TICKED"), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    if !printed.contains("MAILED") {
        println!("CANNOT test what cron mails here: no sendmail is installed");
    }
}
