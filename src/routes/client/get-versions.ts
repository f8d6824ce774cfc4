import { endpoint } from '../../http/endpoint.ts'

/** Releases before 1.1. Some clients look for the literal text `r0.6.0`, though `r0.6.1` implies it. */
const R0 = ['r0.0.1', 'r0.1.0', 'r0.2.0', 'r0.3.0', 'r0.4.0', 'r0.5.0']
const V1 = Array.from({ length: 12 }, (_, index) => `v1.${index + 1}`)

const VERSIONS = { proto: [...R0, 'r0.6.1'], matrix: [...R0, 'r0.6.0', 'r0.6.1', ...V1] }

export const getVersions = endpoint('GET client/versions', { auth: 'none' }, ({ dialect }) => ({
  versions: VERSIONS[dialect],
  // Clients from before release 1.1 ask for these by such names, and use them under `client/unstable`.
  unstable_features: { 'org.matrix.e2e_cross_signing': true, 'org.matrix.msc2432': true },
}))
