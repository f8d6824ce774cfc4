import { isIP } from 'node:net'
import { type ServerName, splitServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, readJson } from '../../core/json.ts'
import { DIALECTS, type Dialect } from '../../core/paths.ts'
import { createAddressGuard } from '../../outbound/addresses.ts'
import type { ServerTarget } from '../../outbound/discovery.ts'
import type { Failure } from '../../outbound/failures.ts'
import type { HttpAnswer } from '../../outbound/http.ts'
import { type Examination, type Finding, ok, problem, skipped, warning } from '../doctor/finding.ts'
import { MAX_BYTES, TIMEOUT_MS } from '../doctor/reach.ts'

const DAY_MS = 86_400_000
const MAX_REDIRECTS = 5

/** Checks the well-known file of the server name. Mistakes in it are warnings, because servers then use the name itself. */
export async function checkWellKnown(server: ServerName, { client }: Examination): Promise<readonly Finding[]> {
  const { host, port } = splitServerName(server) ?? { host: server, port: undefined }
  const subject = 'well-known'
  if (port !== undefined) return [skipped(subject, 'is not asked for: the name says the port')]
  if (isLiteral(host)) return [skipped(subject, 'is not asked for: the name is an address')]
  const ask = (dialect: Dialect) => {
    const url = `https://${host}/.well-known/${dialect}/server`
    return client.request({
      ...{ method: 'GET', url, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES },
      redirects: MAX_REDIRECTS,
    })
  }
  const answers = await Promise.all(DIALECTS.map(async (dialect) => ({ dialect, answer: await ask(dialect) })))
  const said = answers.find(({ answer }) => answer.ok && answer.status === 200) ?? answers[0]!
  const name = `/.well-known/${said.dialect}/server`
  if (!said.answer.ok)
    return [ok(subject, `${host} cannot be asked for it (${said.answer.detail}): the name stands for itself`)]
  if (said.answer.status !== 200)
    return [ok(subject, `there is none (${said.answer.status}): the name stands for itself`)]
  const delegate = objectIn(said.answer)?.['m.server']
  const isName = typeof delegate === 'string' && splitServerName(delegate) !== undefined
  if (isName) return [ok(subject, `${name} says ${delegate}`)]
  const advice = `its operator has to let it answer {"m.server": "host:port"}, or 404`
  return [warning(subject, `${name} makes no sense and is passed over`, advice)]
}

/** Checks the addresses of a host, and whether this server may call them. */
export async function checkAddresses(host: string, { names, config }: Examination): Promise<Finding> {
  const isOpen = createAddressGuard(config.outbound.allow_ranges)
  const bare = host.replace(/^\[|\]$/g, '')
  const addresses = isLiteral(host)
    ? [bare]
    : (await names.addressesOf(host).catch(() => [])).map(({ address }) => address)
  if (addresses.length === 0) {
    return problem(host, 'has no address in DNS', 'see whether the name is spelled right; if so, that server is gone')
  }
  const closed = addresses.filter((address) => !isOpen(address))
  if (closed.length === 0) return ok(host, addresses.join(', '))
  const text = `${closed.join(', ')} is not on the public internet, and is not called`
  const advice = 'if that is meant, allow the network in outbound.allow_ranges'
  return closed.length === addresses.length ? problem(host, text, advice) : warning(host, text, advice)
}

/** Connects to one target and asks for its version. */
export async function checkTarget({ origin, via }: ServerTarget, check: Examination): Promise<readonly Finding[]> {
  const place = `${via.host}:${via.port}`
  const ask = (dialect: Dialect) => {
    const url = `${origin}/_${dialect}/federation/v1/version`
    return check.client.request({ method: 'GET', url, via, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES })
  }
  const first = await ask('matrix')
  if (!first.ok) return [problem(place, first.detail, adviceFor(first, place, origin))]
  const tls = [
    ok(place, `is reached, and speaks TLS as ${new URL(origin).hostname}`),
    ...certificate(first, check.now()),
  ]
  if (isVersion(first)) return [...tls, ok('version', `${versionIn(first)}, by /_matrix`)]
  const second = await ask('proto')
  if (second.ok && isVersion(second)) return [...tls, ok('version', `${versionIn(second)}, by /_proto`)]
  const advice = 'something else than a homeserver is there, or its proxy does not pass /_matrix on to it'
  return [
    ...tls,
    problem('version', `answers ${first.status} to /_matrix/federation/v1/version, and no version`, advice),
  ]
}

function certificate({ certificate: found }: HttpAnswer, now: number): readonly Finding[] {
  if (found === undefined) return []
  const days = Math.floor((found.validUntil - now) / DAY_MS)
  const text = `good for ${days} more days, by ${found.issuer || 'an authority without a name'}`
  return [days >= 3 ? ok('certificate', text) : warning('certificate', text, 'tell its operator')]
}

function adviceFor({ kind }: Failure, place: string, origin: string): string {
  switch (kind) {
    case 'dns':
      return 'see whether the name is spelled right; if so, that server is gone'
    case 'connect':
      return `nothing listens at ${place}, or a firewall keeps us out: its operator has to open it`
    case 'tls':
      return `its operator has to get a certificate for ${new URL(origin).hostname}, with its whole chain; if an authority of yours vouches for it, name that in outbound.ca_file`
    case 'refused':
      return 'if that is meant, allow the network in outbound.allow_ranges'
    case 'timeout':
      return `a firewall drops what comes to ${place}, there or here, or the server is too busy`
    default:
      return `something else than a homeserver listens at ${place}`
  }
}

const isVersion = (answer: HttpAnswer): boolean => answer.status === 200 && isObject(objectIn(answer)?.server)

function versionIn(answer: HttpAnswer): string {
  const { name, version } = (objectIn(answer)?.server ?? {}) as JsonObject
  // Text of another server, made safe for a terminal.
  return [name, version]
    .map((part) =>
      String(part ?? '?')
        .replace(/[^\x20-\x7e]/g, '')
        .slice(0, 100),
    )
    .join(' ')
}

function objectIn({ body }: HttpAnswer): JsonObject | undefined {
  try {
    const { value } = readJson(body)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isLiteral = (host: string): boolean => isIP(host.replace(/^\[|\]$/g, '')) !== 0
