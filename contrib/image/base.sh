#!/bin/sh
# Makes an image with Node.js and npm of nothing but Debian's packages, for places that reach no registry of images:
#   contrib/image/base.sh hearth-base && buildah build --build-arg BASE=localhost/hearth-base --tag hearth .
# Needs mmdebstrap and buildah. MIRROR names a mirror of Debian, SUITE a release other than Debian 13; further words go to mmdebstrap.
set -eu
name=$1
shift
suite=${SUITE:-trixie}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mmdebstrap --variant=minbase --include=nodejs,npm,ca-certificates "$@" "$suite" "$work/root.tar" ${MIRROR:+"deb $MIRROR $suite main"}
container=$(buildah from scratch)
buildah add --quiet "$container" "$work/root.tar" /
buildah config --cmd node "$container"
buildah commit --quiet "$container" "$name"
buildah rm "$container" >/dev/null
