import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { signingKeyFromSeed, verifySignature } from '../../../src/core/signing/key.ts'
import { createSignatureChecks } from '../../../src/domain/rooms/receive/signature-checks.ts'

const [key, other] = [
  signingKeyFromSeed('ed25519:a', randomBytes(32)),
  signingKeyFromSeed('ed25519:b', randomBytes(32)),
]

/** Of every six one is good. */
const claims = Array.from({ length: 120 }, (_, n) => {
  const text = `text ${n} ü`
  const signature = key.sign(text)
  const spoilt = [
    { publicKey: key.publicKey, signature, text },
    { publicKey: key.publicKey, signature, text: `${text}.` },
    { publicKey: other.publicKey, signature, text },
    { publicKey: key.publicKey, signature: signature.slice(2), text },
    { publicKey: 'no key', signature, text },
    { publicKey: key.publicKey, signature: '"', text },
  ]
  return spoilt[n % spoilt.length]!
})

it.each([1, 20, 120])(
  '%i signatures at once are judged as one by one, also after the thread was ended',
  async (count) => {
    const checks = createSignatureChecks()
    const some = claims.slice(0, count)
    const expected = some.map(({ publicKey, signature, text }) => verifySignature(publicKey, text, signature))
    const judge = () => checks.areGood(some)
    expect(await judge()).toEqual(expected)
    const [during] = await Promise.all([judge(), checks.close()])
    expect(during).toEqual(expected)
    expect(await judge()).toEqual(expected)
    await checks.close()
  },
)
