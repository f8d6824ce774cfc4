import type { X509Certificate } from 'node:crypto'
import { constants, existsSync } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { isIP } from 'node:net'
import { dirname } from 'node:path'
import type { Config } from '../../config/schema.ts'
import { splitServerName } from '../../core/ids.ts'
import { OWN_PACKAGES, signingDisagreement } from '../../core/signing/agreement.ts'
import { isRegistrationOpen } from '../../domain/accounts/registration-policy.ts'
import { identityBaseUrl, publicBaseUrl } from '../../domain/public-address.ts'
import { EXPIRY_WARNING_MS, loadCertificate } from '../serve/certificate.ts'
import { isBelowFloor } from '../serve/node-floor.ts'
import { readSecret } from '../serve/secret-file.ts'
import { signingKeyPath } from '../serve/signing-key-file.ts'
import { type Finding, isTrial, ok, problem, skipped, warning } from './finding.ts'

const GIB = 2 ** 30
const DAY_MS = 86_400_000
/** The oldest release of Node that still gets security fixes. */
const OLDEST_NODE = 22

/** Checks the configuration and the machine. */
export async function examineSetup(config: Config, nodeVersion: string, now = Date.now): Promise<readonly Finding[]> {
  return [
    serverName(config),
    address(config),
    registration(config),
    node(nodeVersion),
    await dataDirectory(config),
    await signingKey(config),
    await signing(),
    ...(await ownCertificate(config, now())),
    await disk(config),
  ]
}

function serverName(config: Config): Finding {
  if (!isTrial(config)) return ok('server_name', config.server_name)
  return warning(
    'server_name',
    `${config.server_name}: for trying out, nobody else can reach it`,
    'set server_name to a domain of yours before anyone depends on it: it is part of every id, and stays',
  )
}

function address(config: Config): Finding {
  const hasHomeserver = config.roles.includes('client')
  const subject = hasHomeserver || config.identity.base_url === undefined ? 'public_base_url' : 'identity.base_url'
  const given = hasHomeserver ? config.public_base_url : (config.identity.base_url ?? config.public_base_url)
  const url = hasHomeserver ? publicBaseUrl(config) : identityBaseUrl(config)
  if (isTrial(config)) return ok(subject, url)
  if (given === undefined) {
    const advice = `set ${subject} to the https:// address that clients have for this server, at your reverse proxy or at Hearth (https)`
    return problem(subject, `is not set: clients are told ${url}`, advice)
  }
  if (given.startsWith('https:')) return ok(subject, url)
  const advice = `let a reverse proxy do TLS (--proxy shows how), or Hearth (https.certificate_file), and set ${subject} to the https:// address`
  return problem(subject, `${url} is without TLS: passwords and messages go about in clear`, advice)
}

function registration(config: Config): Finding {
  if (!config.roles.includes('client')) return skipped('registration', 'there are no accounts here')
  const { require_token } = config.registration
  // `true`: as for a request through a proxy.
  if (!isRegistrationOpen(config, true) || require_token || isTrial(config)) {
    return ok('registration', require_token ? 'with a token' : isTrial(config) ? 'open, on this machine' : 'closed')
  }
  const advice =
    'set registration.enabled to false, or registration.require_token to true: open servers are found by spammers'
  return warning('registration', 'anyone may register', advice)
}

function node(version: string): Finding {
  if (isBelowFloor(version)) return problem('Node.js', `${version} can be stopped from afar`, 'move to Node.js 24')
  if (Number(version.split('.')[0]) >= OLDEST_NODE) return ok('Node.js', version)
  return warning('Node.js', `${version} gets no security fixes any more`, 'move to Node.js 24')
}

async function dataDirectory({ data_dir }: Config): Promise<Finding> {
  if (!existsSync(data_dir)) return ok('data_dir', `${data_dir} is made at the first start`)
  try {
    await access(data_dir, constants.R_OK | constants.W_OK | constants.X_OK)
    return ok('data_dir', data_dir)
  } catch {
    return problem('data_dir', `${data_dir} cannot be written`, 'give it to the user that Hearth runs as (chown)')
  }
}

async function signingKey({ data_dir }: Config): Promise<Finding> {
  const path = signingKeyPath(data_dir)
  if (!existsSync(path)) return ok('signing key', 'is made at the first start')
  try {
    await readSecret(path)
    return ok('signing key', `${path}; keep a copy in a safe place`)
  } catch (error) {
    return problem('signing key', (error as Error).message, `chmod 600 ${path}, as the user that Hearth runs as`)
  }
}

/** Makes the same comparison of signing packages as a start. */
async function signing(): Promise<Finding> {
  const disagreement = await signingDisagreement()
  if (disagreement === undefined) return ok('signing', `${OWN_PACKAGES.signer} and tweetnacl agree`)
  return problem('signing', disagreement, 'install the packages again (npm ci): Hearth does not start like this')
}

/** Checks Hearth's own HTTPS certificate: whether it is usable, for how long, and for which names. */
async function ownCertificate(config: Config, now: number): Promise<readonly Finding[]> {
  if (config.https.certificate_file === undefined) return []
  try {
    const { leaf, validUntil } = await loadCertificate(config.https)
    const days = Math.floor((validUntil - now) / DAY_MS)
    const text = `${config.https.certificate_file}: good for ${days} more days`
    const finding =
      validUntil - now > EXPIRY_WARNING_MS
        ? ok('certificate', text)
        : warning('certificate', text, 'renew it now, and see why that did not happen by itself')
    const names = [splitServerName(config.well_known.server ?? config.server_name)?.host ?? config.server_name]
    if (config.public_base_url !== undefined) names.push(new URL(config.public_base_url).hostname)
    const missing = [...new Set(names)].filter((name) => !isNamed(leaf, name))
    if (missing.length === 0) return [finding]
    const lack = `is for ${leaf.subjectAltName ?? 'no name'}, and not for ${missing.join(', ')}`
    return [finding, problem('certificate', lack, `get one that names ${missing.join(' and ')}`)]
  } catch (error) {
    return [problem('certificate', (error as Error).message, 'Hearth does not start like this')]
  }
}

function isNamed(leaf: X509Certificate, host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '')
  return (isIP(bare) === 0 ? leaf.checkHost(bare) : leaf.checkIP(bare)) !== undefined
}

async function disk({ data_dir }: Config): Promise<Finding> {
  let place = data_dir
  while (!existsSync(place) && place !== dirname(place)) place = dirname(place)
  const { bavail, blocks, bsize } = await statfs(place)
  const free = bavail * bsize
  const share = bavail / blocks
  const text = `${(free / GIB).toFixed(1)} GiB free (${Math.round(share * 100)} %) where ${data_dir} is`
  const advice = 'make room: when the disk is full, nothing can be sent or received'
  if (free < GIB) return problem('disk', text, advice)
  return share < 0.1 || free < 5 * GIB ? warning('disk', text, advice) : ok('disk', text)
}
