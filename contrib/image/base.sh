#!/bin/sh
# Makes an image with Node.js and npm of nothing but Debian's packages and npm's own, for places that reach no registry of images:
#   contrib/image/base.sh hearth-base && buildah build --build-arg BASE=localhost/hearth-base --tag hearth .
# Needs mmdebstrap, buildah and npm. MIRROR names a mirror of Debian, SUITE a release other than Debian 13; further words go to mmdebstrap.
set -eu
name=$1
shift
suite=${SUITE:-trixie}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mmdebstrap --variant=minbase --include=nodejs,ca-certificates "$@" "$suite" "$work/root.tar" ${MIRROR:+"deb $MIRROR $suite main"}
# Debian's npm is of 2022, and fails on this package-lock.json.
npm=$(npm --version)
(cd "$work" && npm pack --silent "npm@$npm" && tar -xf "npm-$npm.tgz")
container=$(buildah from scratch)
buildah add --quiet "$container" "$work/root.tar" /
buildah add --quiet "$container" "$work/package" /usr/local/lib/node_modules/npm
buildah run --isolation chroot "$container" -- sh -c 'cd /usr/local/bin && for each in npm npx; do
  chmod +x ../lib/node_modules/npm/bin/$each-cli.js && ln -s ../lib/node_modules/npm/bin/$each-cli.js $each; done && npm --version'
buildah config --cmd node "$container"
buildah commit --quiet "$container" "$name"
buildah rm "$container" >/dev/null
