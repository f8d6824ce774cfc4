import type { NodeFacts, NodeRow } from '../../store/cluster/nodes.ts'
import { MAX_CLOCK_DIFFERENCE_MS } from '../limits/cluster.ts'

/** This process may not run beside those that do. The message says what to do. */
export class NodeRefused extends Error {}

/** Whether a node of a cluster serves in this place now. */
export function isServing(row: NodeRow | undefined): row is NodeRow {
  return row !== undefined && row.cluster !== null && row.left_ms > 0
}

/** @throws NodeRefused if this process cannot be a node beside the one that serves */
export function mustFit(own: NodeFacts, other: NodeRow): void {
  const there = other.address === '' ? 'a command that works in place of a node' : `the node at ${other.address}`
  if (own.cluster === undefined)
    throw new NodeRefused(
      `${there} uses this database: to stand by for it, give this one the same cluster.secret; else give it a database of its own`,
    )
  if (own.cluster !== other.cluster)
    throw new NodeRefused(`${there} uses this database and has another cluster.secret: give all nodes the same one`)
  if (own.keys !== other.keys)
    throw new NodeRefused(
      `${there} has other keys: copy signing.key and identity.key from its data_dir into that of this one, then start it again`,
    )
  if (own.files !== other.files)
    throw new NodeRefused(
      `${there} keeps the files of users elsewhere: use media.store s3 on both, or have both mount the same directory as data_dir/media`,
    )
  if (areFarApart(own.release, other.release))
    throw new NodeRefused(
      `${there} runs Hearth ${other.release}, and this is ${own.release}: nodes may be one minor release apart, so update all of them in such steps`,
    )
}

/** @throws NodeRefused if the clocks of this machine and of the database are too far apart (both in milliseconds) */
export function mustAgreeOnTime(own: number, database: number): void {
  const apart = Math.abs(own - database)
  if (apart <= MAX_CLOCK_DIFFERENCE_MS) return
  throw new NodeRefused(
    `the clock of this machine and that of the database are ${Math.round(apart / 1000)} s apart: have NTP set both, then start it again`,
  )
}

const RELEASE = /^(\d+)\.(\d+)\./

function areFarApart(one: string, other: string): boolean {
  const [, major, minor] = RELEASE.exec(one) ?? []
  const [, otherMajor, otherMinor] = RELEASE.exec(other) ?? []
  return major !== otherMajor || Math.abs(Number(minor) - Number(otherMinor)) > 1
}
