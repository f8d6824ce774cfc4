import { endpoint } from '../../../http/endpoint.ts'

const R0 = ['r0.1.0', 'r0.2.0', 'r0.2.1', 'r0.3.0']
const V1 = Array.from({ length: 12 }, (_, index) => `v1.${index + 1}`)

const VERSIONS = { proto: R0, matrix: [...R0, ...V1] }

export const getIdentityVersions = endpoint('GET identity/versions', { auth: 'none' }, ({ dialect }) => ({
  versions: VERSIONS[dialect],
}))
