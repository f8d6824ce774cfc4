import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  readonly key: string
  readonly cert: string
}

export interface Authority {
  readonly cert: string
  /** Where its certificate is, for `ca_file`. Gone after `remove()`. */
  readonly file: string
  /** A certificate for these names and addresses, for so many days; less than none: one that has run out. */
  issue(hosts: readonly string[], days?: number): Certificate
  remove(): void
}

const DAY_MS = 86_400_000

/** A certificate of its own authority for one host name. */
export function selfSigned(host: string): Certificate {
  const { privateKey, publicKey } = newKey()
  const extensions = [...ofAuthority(publicKey), namesOf([host])]
  const cert = certify({ subject: host, publicKey, days: 2, extensions }, { name: host, privateKey })
  return { key: pemOf(privateKey), cert }
}

/** An authority that no system trusts. */
export function createAuthority(): Authority {
  const name = 'An authority for tests'
  const { privateKey, publicKey } = newKey()
  const signer = { name, privateKey }
  const cert = certify({ subject: name, publicKey, days: 30, extensions: ofAuthority(publicKey) }, signer)
  const directory = mkdtempSync(join(tmpdir(), 'hearth-ca-'))
  const file = join(directory, 'ca.pem')
  writeFileSync(file, cert)
  return {
    cert,
    file,
    issue(hosts, days = 10) {
      const own = newKey()
      const extensions = [signedWith(publicKey), namesOf(hosts)]
      const subject = 'a server of a test'
      return {
        key: pemOf(own.privateKey),
        cert: certify({ subject, publicKey: own.publicKey, days, extensions }, signer),
      }
    },
    remove: () => rmSync(directory, { recursive: true }),
  }
}

interface Certified {
  readonly subject: string
  readonly publicKey: KeyObject
  /** From now; it began twenty days ago. */
  readonly days: number
  readonly extensions: readonly Buffer[]
}

interface Signer {
  readonly name: string
  readonly privateKey: KeyObject
}

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
const pemOf = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' }).toString()

const [INTEGER, BITS, OCTETS, UTF8, UTC_TIME, SEQUENCE, SET] = [0x02, 0x03, 0x04, 0x0c, 0x17, 0x30, 0x31] as const
const [VERSION, EXTENSIONS, DNS_NAME, IP_ADDRESS, KEY_ID] = [0xa0, 0xa3, 0x82, 0x87, 0x80] as const
const oid = (hex: string) => Buffer.from(hex, 'hex')
const ECDSA_SHA256 = oid('06082a8648ce3d040302')
const COMMON_NAME = oid('0603550403')
const SUBJECT_KEY_ID = oid('0603551d0e')
const KEY_USAGE = oid('0603551d0f')
const ALTERNATIVE_NAMES = oid('0603551d11')
const BASIC_CONSTRAINTS = oid('0603551d13')
const AUTHORITY_KEY_ID = oid('0603551d23')
const TRUE = oid('0101ff')
const THIRD_VERSION = oid('020102')
const SIGNS_ALL = oid('03020186')

/** One value in DER. */
function der(tag: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  const size = [...body.length.toString(16).padStart(4, '0').matchAll(/../g)].map(([byte]) => Number.parseInt(byte, 16))
  return Buffer.concat([Buffer.from(body.length < 0x80 ? [tag, body.length] : [tag, 0x82, ...size]), body])
}

/** A certificate as in RFC 5280, as PEM. */
function certify({ subject, publicKey, days, extensions }: Certified, { name, privateKey }: Signer): string {
  const algorithm = der(SEQUENCE, ECDSA_SHA256)
  const shown = der(
    SEQUENCE,
    der(VERSION, THIRD_VERSION),
    der(INTEGER, Buffer.from([1]), randomBytes(15)),
    algorithm,
    nameOf(name),
    der(SEQUENCE, timeIn(-20), timeIn(days)),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(EXTENSIONS, der(SEQUENCE, ...extensions)),
  )
  const signature = der(BITS, Buffer.from([0]), sign('sha256', shown, privateKey))
  return new X509Certificate(der(SEQUENCE, shown, algorithm, signature)).toString()
}

const nameOf = (name: string) => der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8, name))))

function timeIn(days: number): Buffer {
  const moment = new Date(Date.now() + days * DAY_MS).toISOString()
  return der(UTC_TIME, `${moment.replace(/[-:T]/g, '').slice(2, 14)}Z`)
}

const extension = (id: Buffer, value: Buffer) => der(SEQUENCE, id, der(OCTETS, value))
const keyIdOf = (key: KeyObject) =>
  createHash('sha1')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest()
const signedWith = (key: KeyObject) => extension(AUTHORITY_KEY_ID, der(SEQUENCE, der(KEY_ID, keyIdOf(key))))

const ofAuthority = (key: KeyObject) => [
  extension(SUBJECT_KEY_ID, der(OCTETS, keyIdOf(key))),
  signedWith(key),
  der(SEQUENCE, BASIC_CONSTRAINTS, TRUE, der(OCTETS, der(SEQUENCE, TRUE))),
  der(SEQUENCE, KEY_USAGE, TRUE, der(OCTETS, SIGNS_ALL)),
]

function namesOf(hosts: readonly string[]): Buffer {
  const names = hosts.map((host) =>
    isIP(host) === 0 ? der(DNS_NAME, host) : der(IP_ADDRESS, Buffer.from(host.split('.').map(Number))),
  )
  return extension(ALTERNATIVE_NAMES, der(SEQUENCE, ...names))
}
