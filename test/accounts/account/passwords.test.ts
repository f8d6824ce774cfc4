import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import type { ProtocolError } from '../../../src/core/errors.ts'
import { isAccessToken, newAccessToken } from '../../../src/domain/accounts/access-tokens.ts'
import { createPasswords } from '../../../src/domain/accounts/passwords.ts'
import { formatPhc, parsePhc } from '../../../src/domain/accounts/phc.ts'
import { MAX_WAITING_HASHES } from '../../../src/domain/limits/passwords.ts'

const NO_POLICY = {
  min_length: 8,
  require_lowercase: false,
  require_uppercase: false,
  require_digit: false,
  require_symbol: false,
}

let seed = 0
const random = { bytes: (count: number) => Buffer.alloc(count, ++seed) }
const passwordsAt = (log2_cost: number) =>
  createPasswords({
    config: { passwords: { ...NO_POLICY, scrypt: { log2_cost, block_size: 8, parallelism: 1 } } },
    random,
  })

const passwords = passwordsAt(4)

afterAll(() => passwords.close())

describe('password hashes', () => {
  it('fit their password and no other', async () => {
    const stored = await passwords.hash('correct horse')
    expect(await passwords.verify('correct horse', stored)).toBe(true)
    expect(await passwords.verify('correct horsf', stored)).toBe(false)
    expect(await passwords.hash('correct horse')).not.toBe(stored)
  })

  it('know a password in any Unicode form', async () => {
    const stored = await passwords.hash('caf\u00e9 cr\u00e8me')
    expect(await passwords.verify('cafe\u0301 cre\u0300me', stored)).toBe(true)
  })

  it('are the scrypt of the published vector', async () => {
    // RFC 7914, section 12: P="password", S="NaCl", N=1024, r=8, p=16, its first 32 bytes.
    const digest = Buffer.from('fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162', 'hex')
    const stored = formatPhc({ log2Cost: 10, blockSize: 8, parallelism: 16, salt: Buffer.from('NaCl'), digest })
    expect(await passwords.verify('password', stored)).toBe(true)
  })

  it('refuse what is no hash, in the time of one that is', async () => {
    const costly = passwordsAt(13)
    const stored = await costly.hash('correct horse')
    const time = async (against: string | undefined | null) => {
      const begun = performance.now()
      expect(await costly.verify('wrong', against)).toBe(false)
      return performance.now() - begun
    }
    // A refusal without the work takes next to no time, in every try; what else the machine does slows some tries only.
    const takesAsLong = async (against: string | undefined | null) => (await time(against)) > (await time(stored)) / 2
    for (const against of [undefined, null, '', 'plain', '$scrypt$ln=1']) {
      let tries = 0
      while (!(await takesAsLong(against))) expect(++tries, `${against}`).toBeLessThan(10)
    }
    await costly.close()
  })

  it('tell when they were made at another cost', async () => {
    const stored = await passwords.hash('correct horse')
    expect(passwords.isOutdated(stored)).toBe(false)
    const other = passwordsAt(5)
    expect(other.isOutdated(stored)).toBe(true)
    await other.close()
  })

  it('survive being written and read', () => {
    const bytes = (length: number) =>
      fc.uint8Array({ minLength: length, maxLength: length }).map((array) => Buffer.from(array))
    const hash = fc.record({
      log2Cost: fc.integer({ min: 1, max: 20 }),
      blockSize: fc.integer({ min: 1, max: 32 }),
      parallelism: fc.integer({ min: 1, max: 16 }),
      salt: bytes(16),
      digest: bytes(32),
    })
    fc.assert(
      fc.property(hash, (value) => {
        expect(parsePhc(formatPhc(value))).toEqual(value)
      }),
    )
  })

  it('leave the event loop alone, and are refused when too many wait', async () => {
    const costly = passwordsAt(10)
    let turns = 0
    const turn = setInterval(() => turns++, 1)
    const results = await Promise.allSettled(
      Array.from({ length: MAX_WAITING_HASHES + 50 }, () => costly.verify('x', undefined)),
    )
    clearInterval(turn)
    await costly.close()
    const refused = results.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    // One or two are under way, by the cores of the machine; all others wait.
    expect([48, 49]).toContain(refused.length)
    for (const { reason } of refused) expect(reason).toMatchObject({ errcode: 'M_LIMIT_EXCEEDED', status: 429 })
    expect(turns).toBeGreaterThan(50)
  })

  it('wait for no longer than people do: the others are told when to come again', async () => {
    const real = passwordsAt(17)
    const all = Array.from({ length: 100 }, () => real.verify('x', undefined).catch((error: unknown) => error))
    const refused = await Promise.all(all.slice(-40))
    for (const error of refused) {
      expect(error).toMatchObject({ errcode: 'M_LIMIT_EXCEEDED', status: 429 })
      const { retry_after_ms: ms } = (error as ProtocolError).extra
      expect(ms).toBeGreaterThanOrEqual(2_000)
      expect(ms).toBeLessThanOrEqual(10_000)
    }
    await real.close()
    expect((await Promise.all(all)).filter((result) => result instanceof Error)).toHaveLength(100)
  })
})

describe('access tokens', () => {
  it('are known by their form', () => {
    const token = newAccessToken(random)
    expect(isAccessToken(token)).toBe(true)
    const changed = token.replace(/.(?=_[0-9a-f]{8}$)/, (char) => (char === 'A' ? 'B' : 'A'))
    for (const wrong of [changed, '', 'hearth_', `x${token}`, `${token}0`, token.slice(0, -1), token.slice(7)]) {
      expect(isAccessToken(wrong)).toBe(false)
    }
  })
})
