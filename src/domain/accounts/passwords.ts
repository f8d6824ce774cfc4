import { timingSafeEqual } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { weaknessOf } from '../../core/password-policy.ts'
import type { Random } from '../clock.ts'
import { MAX_PASSWORD_CHARS } from '../limits.ts'
import { formatPhc, parsePhc, type ScryptCost, type ScryptHash } from './phc.ts'
import { createScryptPool } from './scrypt-pool.ts'

export interface Passwords {
  /** @throws ProtocolError `M_WEAK_PASSWORD` if the password is not allowed here */
  checkNew(password: string): void
  /** @throws ProtocolError 429 `M_LIMIT_EXCEEDED` if too many hashes wait already */
  mustHaveRoom(): void
  /** The PHC string to store. */
  hash(password: string): Promise<string>
  /**
   * Whether the password matches the stored hash. Without a hash it takes as long and returns false, so that nobody learns which users
   * exist.
   */
  verify(password: string, stored: string | null | undefined): Promise<boolean>
  /** Whether a stored hash has another cost than new ones. */
  isOutdated(stored: string): boolean
  close(): Promise<void>
}

const SALT_BYTES = 16

export function createPasswords(deps: {
  readonly config: Pick<Config, 'passwords'>
  readonly random: Random
}): Passwords {
  const { scrypt } = deps.config.passwords
  const cost: ScryptCost = {
    log2Cost: scrypt.log2_cost,
    blockSize: scrypt.block_size,
    parallelism: scrypt.parallelism,
  }
  const pool = createScryptPool(cost)
  const nobody: ScryptHash = { ...cost, salt: Buffer.alloc(SALT_BYTES), digest: Buffer.alloc(32) }

  // Different Unicode forms of a password count as the same password.
  const derive = (password: string, salt: Buffer, at: ScryptCost): Promise<Buffer> =>
    pool.derive(password.normalize('NFKC'), salt, {
      log2Cost: at.log2Cost,
      blockSize: at.blockSize,
      parallelism: at.parallelism,
    })

  return {
    checkNew(password) {
      if (password.length > MAX_PASSWORD_CHARS) {
        throw new ProtocolError('M_WEAK_PASSWORD', `A password may have at most ${MAX_PASSWORD_CHARS} characters.`)
      }
      const weakness = weaknessOf(password, deps.config.passwords)
      if (weakness !== undefined) throw new ProtocolError('M_WEAK_PASSWORD', weakness)
    },
    async hash(password) {
      const salt = deps.random.bytes(SALT_BYTES)
      return formatPhc({ ...cost, salt, digest: await derive(password, salt, cost) })
    },
    async verify(password, stored) {
      if (password.length > MAX_PASSWORD_CHARS) return false
      const known = stored ? parsePhc(stored) : undefined
      const against = known ?? nobody
      const digest = await derive(password, against.salt, against)
      return known !== undefined && timingSafeEqual(digest, known.digest)
    },
    isOutdated(stored) {
      const hash = parsePhc(stored)
      return (
        hash?.log2Cost !== cost.log2Cost || hash.blockSize !== cost.blockSize || hash.parallelism !== cost.parallelism
      )
    },
    mustHaveRoom: pool.mustHaveRoom,
    close: () => pool.close(),
  }
}
