import { ProtocolError } from '../../core/errors.ts'

/** The features that existing tools switch for single users, and whether this server has them. It has them for everybody or for nobody. */
const FEATURES: ReadonlyMap<string, boolean> = new Map([
  ['msc3881', true],
  ['msc3575', true],
  ['msc3026', false],
  ['msc3967', true],
  ['msc4222', true],
])

export const experimentalFeatures = (): Record<string, boolean> => Object.fromEntries(FEATURES)

/** @throws ProtocolError `M_INVALID_PARAM` for a feature that is not as wanted, since nothing here is switched for single users */
export function requireFeatures(wanted: Readonly<Record<string, boolean>>): void {
  for (const [name, isWanted] of Object.entries(wanted)) {
    const is = FEATURES.get(name)
    if (is === undefined) throw new ProtocolError('M_INVALID_PARAM', `This server knows no feature ${name}.`)
    if (is === isWanted) continue
    const state = is ? 'has' : 'does not have'
    throw new ProtocolError(
      'M_INVALID_PARAM',
      `This server ${state} ${name}, for all users: it is not switched for one.`,
    )
  }
}
