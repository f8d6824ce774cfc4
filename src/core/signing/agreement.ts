import { encodeBase64 } from '../base64.ts'
import type { JsonValue } from '../json.ts'
import { compareCodePoints, encodeCanonical } from './canonical-json.ts'
import { sodiumEd25519 } from './ed25519.ts'
import { signingKeyFromSeed, verifySignature } from './key.ts'

/** An implementation of signing and canonical JSON. */
export interface SigningPackages {
  /** The names of the packages, for the operator. */
  readonly encoder: string
  readonly signer: string
  encode(value: JsonValue): string
  keyPair(seed: Uint8Array): { readonly publicKey: string; sign(message: Uint8Array): string }
  verify(publicKey: string, message: Uint8Array, signature: string): boolean
}

/** The implementation that this process uses. */
export const OWN_PACKAGES: SigningPackages = {
  encoder: 'the canonical JSON of Hearth itself',
  signer: sodiumEd25519 === undefined ? `OpenSSL (in Node.js)` : 'sodium-native',
  encode: encodeCanonical,
  keyPair: (seed) => signingKeyFromSeed('ed25519:check', seed),
  verify: verifySignature,
}

/** An independent implementation in slow, pure JavaScript, loaded only for the comparison. */
export async function loadWitnesses(): Promise<SigningPackages> {
  const [{ default: nacl }, { walk }] = await Promise.all([import('tweetnacl'), import('canonical-json')])
  const bytes = (base64: string) => Buffer.from(base64, 'base64')
  return {
    encoder: 'canonical-json',
    signer: 'tweetnacl',
    encode(value) {
      const chunks: string[] = []
      walk(value, (chunk) => chunks.push(chunk), compareCodePoints)
      return chunks.join('')
    },
    keyPair(seed) {
      const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(seed)
      return {
        publicKey: encodeBase64(publicKey),
        sign: (message) => encodeBase64(nacl.sign.detached(message, secretKey)),
      }
    },
    verify: (publicKey, message, signature) => nacl.sign.detached.verify(message, bytes(signature), bytes(publicKey)),
  }
}

/** The second vector of RFC 8032, section 7.1. */
const SEED = Buffer.from('4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb', 'hex')
const PUBLIC_KEY = 'PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw'
const MESSAGE = Uint8Array.of(0x72)
const SIGNATURE = 'kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA'

/** Cases that encoders get wrong: keys that look like numbers, `__proto__`, code points past the first plane, escapes. */
const VALUE: JsonValue = JSON.parse(
  '{"10":1,"9":[],"__proto__":{"b":null,"a":true},"\\ud83d\\ude00":"\\u007f\\u0001\\"\\\\/","\\uffff":-9007199254740991,"":"\\u2028"}',
)
const ENCODED =
  '{"":"\u2028","10":1,"9":[],"__proto__":{"a":true,"b":null},"\uffff":-9007199254740991,"\u{1f600}":"\u007f\\u0001\\"\\\\/"}'

/**
 * Signs and encodes known values with two independent implementations. Gives the packages whose result differs from the published vectors,
 * or that failed; none if both are right.
 */
export function brokenPackages(own: SigningPackages, witness: SigningPackages): string[] {
  return [own, witness].flatMap((each) => [
    ...(holds(() => each.encode(VALUE) === ENCODED) ? [] : [each.encoder]),
    ...(holds(() => signsRight(each)) ? [] : [each.signer]),
  ])
}

function signsRight({ keyPair, verify }: SigningPackages): boolean {
  const { publicKey, sign } = keyPair(SEED)
  return (
    publicKey === PUBLIC_KEY &&
    sign(MESSAGE) === SIGNATURE &&
    verify(PUBLIC_KEY, MESSAGE, SIGNATURE) &&
    !verify(PUBLIC_KEY, Uint8Array.of(0x73), SIGNATURE)
  )
}

function holds(claim: () => boolean): boolean {
  try {
    return claim()
  } catch {
    return false
  }
}

/** The message for the operator; undefined if all agree. */
export async function signingDisagreement(): Promise<string | undefined> {
  const witness = await loadWitnesses().catch((error: Error) => error)
  if (witness instanceof Error) return `tweetnacl or canonical-json cannot be loaded: ${witness.message}`
  const broken = brokenPackages(OWN_PACKAGES, witness)
  if (broken.length === 0) return undefined
  return `${broken.join(' and ')} ${broken.length === 1 ? 'comes' : 'come'} to other bytes than the published vectors`
}
