#!/bin/bash
# Manual pages, completions and the Debian package: made of what the programs say, complete, and installed where they
# belong.
. "$(dirname "$0")/lib.sh"
share=$build/share
cases=1

pages=$scratch/pages
cp -r "$share/man/man1" "$pages" && gunzip "$pages"/*.gz || fail 'no compressed manual pages'

options=$("$muster" help run all | grep -oE '^  --[a-z-]+' | sort -u)
[ "$(echo "$options" | wc -l)" -gt 50 ] || fail 'the help of all options lists few of them'
for option in $options; do
  grep -qF -- ".B ${option//-/\\-}" "$pages/muster-run.1" || fail "$option is not in the manual page"
  grep -qE -- "[ \"]${option}[ \"]" "$share/bash-completion/completions/muster" || fail "$option is not completed in bash"
  grep -qF -- "*$option[" "$share/zsh/vendor-completions/_muster" || fail "$option is not completed in zsh"
done
for command in $("$muster" help | grep -oE '^  [a-z]+' ); do
  "$muster" help "$command" | head -1 | grep -q '^Usage: muster COMMAND\|^muster: ' && continue
  [ -f "$pages/muster-$command.1" ] || fail "no manual page of muster $command"
done
if command -v groff >/dev/null; then
  complaints=$(groff -man -ww -z "$pages"/*.1 2>&1)
  [ -z "$complaints" ] || fail "groff complains: $complaints"
fi

complete_with() {
  bash -c '
    . "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _muster 2>/dev/null; printf "%s\n" "${COMPREPLY[@]}"' _ "$share/bash-completion/completions/muster" "$@"
}
[ "$(complete_with muster cal)" = calibrate ] || fail "muster cal<TAB> is $(complete_with muster cal)"
complete_with muster run gro | grep -qx group || fail 'muster run gro<TAB> does not offer group'
complete_with muster run sync-n | grep -qx sync-noop || fail 'muster run sync-n<TAB> does not offer sync-noop'
complete_with muster run chatroom-1 | grep -qx chatroom-1000 || fail 'presets are not offered'
complete_with muster help run mq | grep -qx mqtt || fail 'muster help run mq<TAB> does not offer mqtt'
[ -z "$(complete_with muster help plan mq)" ] || fail 'muster help plan has no groups'
[ "$(complete_with muster run private --arrivals p)" = poisson ] || fail 'choices of an option are not offered'
complete_with muster find private --res | grep -qx -- --resolution || fail 'options of a search are not offered'
complete_with muster find private --payl | grep -qx -- --payload-bytes || fail 'options of a run are not offered to find'
if command -v zsh >/dev/null; then
  zsh -n "$share/zsh/vendor-completions/_muster" || fail 'zsh cannot read its completion'
fi

if command -v dpkg-deb >/dev/null && command -v cpack >/dev/null; then
  (cd "$build" && cpack -G DEB -B "$scratch/deb") >"$scratch/cpack" 2>&1 || fail "cpack: $(tail -5 "$scratch/cpack")"
  package=$(ls "$scratch"/deb/muster_*.deb 2>/dev/null)
  [ -n "$package" ] || fail 'no package was made'
  dpkg-deb -f "$package" Depends | grep -q 'libc6' || fail "dependencies: $(dpkg-deb -f "$package" Depends)"
  dpkg-deb -x "$package" "$scratch/root"
  for file in bin/musterd share/man/man1/muster-run.1.gz share/doc/muster/copyright share/zsh/vendor-completions/_muster \
    share/bash-completion/completions/muster; do
    [ -f "$scratch/root/usr/$file" ] || fail "usr/$file is not in the package"
  done
  [ "$("$scratch/root/usr/bin/muster" version | head -1)" = "$("$muster" version | head -1)" ] ||
    fail 'the packaged muster is another one'
fi
finish
