import { endpoint } from '../../../http/endpoint.ts'

/** Releases before 1.1. Some clients look for the literal text `r0.6.0`, though `r0.6.1` implies it. */
const R0 = ['r0.0.1', 'r0.1.0', 'r0.2.0', 'r0.3.0', 'r0.4.0', 'r0.5.0']

/** Every release up to the newest: this server has what each added (docs/decisions/0014-every-release-is-named.md). */
const V1 = Array.from({ length: 19 }, (_, index) => `v1.${index + 1}`)

const VERSIONS = { proto: [...R0, 'r0.6.1'], matrix: [...R0, 'r0.6.0', 'r0.6.1', ...V1] }

/** Features that clients look for by name: of releases that they do not know, and of proposals. */
const FEATURES = [
  // Clients from before release 1.1 ask for these, and use them under `client/unstable`.
  'org.matrix.e2e_cross_signing',
  'org.matrix.msc2432',
  // 1.4: private read receipts, threads and their unread counts; the directory by types of rooms
  'org.matrix.msc2285.stable',
  'org.matrix.msc3440.stable',
  'org.matrix.msc3771',
  'org.matrix.msc3773',
  'org.matrix.msc3827.stable',
  'org.matrix.msc3856.stable',
  // 1.7: files whose content comes later; pings of application services; mentions that events list
  'fi.mau.msc2246.stable',
  'fi.mau.msc2659.stable',
  'org.matrix.msc3952_intentional_mentions',
  // 1.10: relations of relations
  'org.matrix.msc3981',
  // 1.11: files for users alone
  'org.matrix.msc3916.stable',
  // 1.16: profile fields of any name
  'uk.tcpip.msc4133.stable',
  // 1.18: redactions that are sent as other events are; a switch against invitations
  'com.beeper.msc4169',
  'org.matrix.msc4380.stable',
  // 1.19: the rooms that two users share
  'uk.half-shot.msc2666.query_mutual_rooms',
  'uk.half-shot.msc2666.query_mutual_rooms.stable',
  // Account data can be deleted; pushers can be switched off; invitations can be filtered; threads can be followed.
  'org.matrix.msc3391',
  'org.matrix.msc3881',
  'org.matrix.msc4155',
  'org.matrix.msc4306',
  // Sliding sync: as clients had it before it was merged, as it was merged, and its extensions (docs/decisions/0016)
  'org.matrix.simplified_msc3575',
  'org.matrix.msc4186',
  'org.matrix.msc4508',
  'org.matrix.msc4508.stable',
  'org.matrix.msc4538',
  'org.matrix.msc4543',
  'org.matrix.msc4548',
  'org.matrix.msc4551',
  // A device that waits for a user who has no other
  'org.matrix.msc3814',
  // Events can be sent later, which clients in calls rely on.
  'org.matrix.msc4140',
  // Events that every sync delivers for a while
  'org.matrix.msc4354',
]

const UNSTABLE_FEATURES = Object.fromEntries(FEATURES.map((name) => [name, true]))

/** Signing in by a QR code as clients do it since 2024: a device without a session begins. */
const QR_LOGIN = { 'org.matrix.msc4108': true }

export const getVersions = endpoint(
  'GET client/versions',
  { auth: 'none', anywhere: true },
  ({ dialect }, { config }) => ({
    versions: VERSIONS[dialect],
    unstable_features: { ...UNSTABLE_FEATURES, ...(config.qr_login.rendezvous === 'anyone' && QR_LOGIN) },
  }),
)
