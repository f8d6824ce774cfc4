import { endpoint } from '../../../http/endpoint.ts'

/** Releases before 1.1. Some clients look for the literal text `r0.6.0`, though `r0.6.1` implies it. */
const R0 = ['r0.0.1', 'r0.1.0', 'r0.2.0', 'r0.3.0', 'r0.4.0', 'r0.5.0']

/** A release is named when all that it added is served; 1.3 added relations, which are not (docs/decisions/0011-what-versions-names.md). */
const V1 = ['v1.1', 'v1.2']

const VERSIONS = { proto: [...R0, 'r0.6.1'], matrix: [...R0, 'r0.6.0', 'r0.6.1', ...V1] }

/** Supported features of later releases, by the names that clients look for. */
const FEATURES = [
  // Clients from before release 1.1 ask for these, and use them under `client/unstable`.
  'org.matrix.e2e_cross_signing',
  'org.matrix.msc2432',
  // 1.4: private read receipts; the directory by types of rooms
  'org.matrix.msc2285.stable',
  'org.matrix.msc3827.stable',
  // 1.7: files whose content comes later; pings of application services; mentions that events list
  'fi.mau.msc2246.stable',
  'fi.mau.msc2659.stable',
  'org.matrix.msc3952_intentional_mentions',
  // 1.11: files for users alone
  'org.matrix.msc3916.stable',
  // 1.16: profile fields of any name
  'uk.tcpip.msc4133.stable',
  // 1.18: redactions that are sent as other events are
  'com.beeper.msc4169',
  // 1.19: rooms that two users share
  'uk.half-shot.msc2666.query_mutual_rooms',
  'uk.half-shot.msc2666.query_mutual_rooms.stable',
]

const UNSTABLE_FEATURES = Object.fromEntries(FEATURES.map((name) => [name, true]))

export const getVersions = endpoint('GET client/versions', { auth: 'none' }, ({ dialect }) => ({
  versions: VERSIONS[dialect],
  unstable_features: UNSTABLE_FEATURES,
}))
