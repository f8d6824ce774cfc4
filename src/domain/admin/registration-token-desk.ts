import { ProtocolError } from '../../core/errors.ts'
import {
  deleteRegistrationToken,
  findRegistrationToken,
  insertRegistrationToken,
  listRegistrationTokens,
  type RegistrationTokenRow,
  updateRegistrationToken,
} from '../../store/accounts/registration-tokens.ts'
import type { Database } from '../../store/db/db.ts'
import { REGISTRATION_TOKEN } from '../accounts/registration-tokens.ts'
import type { Clock, Random } from '../clock.ts'

/** A registration token, for operators. */
export interface RegistrationTokenView {
  readonly token: string
  readonly uses_allowed: number | null
  /** Always 0: a use is counted only when the account is made. */
  readonly pending: 0
  readonly completed: number
  /** Milliseconds. */
  readonly expiry_time: number | null
}

/** Null means no limit; undefined leaves a limit as it is. */
export interface TokenBounds {
  readonly uses_allowed?: number | null
  readonly expiry_time?: number | null
}

/** The registration tokens in the database. The configured one is not among them. */
export interface RegistrationTokenDesk {
  list(isUsable: boolean | undefined): Promise<RegistrationTokenView[]>
  /** @throws ProtocolError `M_NOT_FOUND` */
  get(token: string): Promise<RegistrationTokenView>
  /** @throws ProtocolError `M_INVALID_PARAM` for a token that exists or is invalid */
  create(wish: TokenBounds & { readonly token?: string; readonly length?: number }): Promise<RegistrationTokenView>
  /** @throws ProtocolError `M_NOT_FOUND`, `M_INVALID_PARAM` */
  update(token: string, bounds: TokenBounds): Promise<RegistrationTokenView>
  /** @throws ProtocolError `M_NOT_FOUND` */
  remove(token: string): Promise<void>
}

const DEFAULT_LENGTH = 16
const MAX_USES = 2 ** 31 - 1
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** The first character is one of the first 32, all letters. A command would read a token that begins with a dash as an option. */
const FIRST_LETTERS = 32

const viewOf = ({ token, uses_allowed, uses, expires_at }: RegistrationTokenRow): RegistrationTokenView => ({
  token,
  uses_allowed,
  pending: 0,
  completed: uses,
  expiry_time: expires_at,
})

const unknown = () => new ProtocolError('M_NOT_FOUND', 'There is no such registration token.')

export function createRegistrationTokenDesk(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
}): RegistrationTokenDesk {
  const { db, clock, random } = deps

  function checkBounds({ uses_allowed, expiry_time }: TokenBounds): void {
    if (typeof uses_allowed === 'number' && (uses_allowed < 0 || uses_allowed > MAX_USES)) {
      throw new ProtocolError('M_INVALID_PARAM', `'uses_allowed' is a number from 0 to ${MAX_USES}, or null.`)
    }
    if (typeof expiry_time === 'number' && expiry_time < clock.now()) {
      throw new ProtocolError('M_INVALID_PARAM', "'expiry_time' is past: it is a time in milliseconds, or null.")
    }
  }

  const chosen = (length: number): string =>
    [...random.bytes(length)].map((byte, at) => LETTERS[byte % (at === 0 ? FIRST_LETTERS : LETTERS.length)]).join('')

  async function get(token: string): Promise<RegistrationTokenView> {
    const row = REGISTRATION_TOKEN.test(token) ? await findRegistrationToken(db, token) : undefined
    if (row === undefined) throw unknown()
    return viewOf(row)
  }

  return {
    get,
    list: async (isUsable) => (await listRegistrationTokens(db, clock.now(), isUsable)).map(viewOf),
    async create({ length = DEFAULT_LENGTH, token = chosen(length), ...bounds }) {
      if (!REGISTRATION_TOKEN.test(token)) {
        throw new ProtocolError('M_INVALID_PARAM', 'A registration token has 1 to 64 letters, digits and . _ ~ or -.')
      }
      checkBounds(bounds)
      const usesAllowed = bounds.uses_allowed ?? undefined
      const expiresAt = bounds.expiry_time ?? undefined
      const isNew = await db.tx((tx) =>
        insertRegistrationToken(tx, { token, usesAllowed, createdAt: clock.now(), expiresAt }),
      )
      if (!isNew) throw new ProtocolError('M_INVALID_PARAM', 'There is such a registration token already.')
      return get(token)
    },
    async update(token, bounds) {
      await get(token)
      checkBounds(bounds)
      const change = { usesAllowed: bounds.uses_allowed, expiresAt: bounds.expiry_time }
      const row = await db.tx((tx) => updateRegistrationToken(tx, token, change))
      if (row === undefined) throw unknown()
      return viewOf(row)
    },
    async remove(token) {
      if (!REGISTRATION_TOKEN.test(token) || !(await db.tx((tx) => deleteRegistrationToken(tx, token)))) throw unknown()
    },
  }
}
