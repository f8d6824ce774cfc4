import { isObject, type JsonObject, readJson } from '../../core/json.ts'
import { publicBaseUrl } from '../../domain/public-address.ts'
import { addressReader } from '../../http/client-address.ts'
import { createAddressGuard } from '../../outbound/addresses.ts'
import type { HttpAnswer } from '../../outbound/http.ts'
import { type Examination, type Finding, ok, problem, skipped, warning } from './finding.ts'
import { crossOrigin, MAX_BYTES, TIMEOUT_MS } from './reach.ts'

/** An address for documentation (RFC 5737), which no client has. */
const FORGED = '198.51.100.77'

/** Checks that the proxy between clients and Hearth passes requests on unchanged. */
export async function examineProxy(examination: Examination): Promise<readonly Finding[]> {
  const base = publicBaseUrl(examination.config)
  if (examination.config.public_base_url === undefined) return [skipped('proxy', 'public_base_url is not set')]
  const ask = async (path: string, values: Partial<Parameters<Examination['client']['request']>[0]> = {}) => {
    const request = { method: 'GET', url: base + path, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, ...values }
    const answer = await examination.client.request(request)
    return answer.ok ? answer : undefined
  }
  const first = await ask('/_matrix/client/versions')
  if (first?.status !== 200) return [skipped('proxy', `${base} does not answer`)]
  return [
    await paths(ask),
    await largeRequests(ask, examination.config.limits.max_body_bytes),
    await browsers(ask),
    await callers(ask, examination),
  ]
}

type Ask = (path: string, values?: object) => Promise<HttpAnswer | undefined>

/** Requests a room alias with characters that some proxies decode or refuse. */
async function paths(ask: Ask): Promise<Finding> {
  const answer = await ask('/_matrix/client/v3/directory/room/%23doctor%2Fprobe%3Aexample.org')
  // Hearth answers about the alias, known or not. If the proxy changed the path, the answer is a different one.
  const { errcode } = objectIn(answer)
  if (typeof errcode === 'string' && errcode !== 'M_UNRECOGNIZED') return ok('paths', 'come as they were sent')
  const advice =
    'in nginx, write proxy_pass without a path, not even a slash; in Apache, add nocanon and AllowEncodedSlashes NoDecode; in Traefik, allow encoded characters (--proxy traefik)'
  return problem('paths', 'are decoded, changed or refused by the proxy: not every room and user can be found', advice)
}

async function largeRequests(ask: Ask, maxBytes: number): Promise<Finding> {
  const body = JSON.stringify({ resync: 'x'.repeat(maxBytes - 100) })
  const headers = { 'content-type': 'application/json' }
  const answer = await ask('/_matrix/client/v3/createRoom', { method: 'POST', headers, body })
  const size = `${Math.round(maxBytes / 1024)} KiB`
  if (typeof objectIn(answer).errcode === 'string') return ok('large requests', `${size} come through`)
  const what = answer === undefined ? 'breaks off' : `answers ${answer.status} to`
  const advice = `allow it in the proxy: client_max_body_size ${maxBytes} in nginx`
  return problem('large requests', `the proxy ${what} requests of ${size}`, advice)
}

async function browsers(ask: Ask): Promise<Finding> {
  const headers = { origin: 'https://app.example.org', 'access-control-request-method': 'POST' }
  const answer = await ask('/_matrix/client/v3/login', { method: 'OPTIONS', headers })
  if (answer !== undefined && answer.status < 300) return crossOrigin(answer, 'browsers')
  return problem(
    'browsers',
    `OPTIONS is answered with ${answer?.status ?? 'nothing'}`,
    'let the proxy pass OPTIONS on to Hearth',
  )
}

/** Checks which client address Hearth sees, and whether a client can forge it. */
async function callers(ask: Ask, { config }: Examination): Promise<Finding> {
  const seen = async (headers = {}) =>
    objectIn(await ask('/_matrix/client/unstable/hearth.caller', { headers })).address
  const [plain, forging] = [await seen(), await seen({ 'x-forwarded-for': FORGED })]
  if (typeof plain !== 'string' || typeof forging !== 'string')
    return skipped('callers', 'this is no Hearth of this release')
  const isTrusted = addressReader(config.trusted_proxies)(plain, FORGED) === FORGED
  const header = 'X-Forwarded-For'
  if (forging === FORGED) {
    if (isTrusted) return ok('callers', `${header} comes through (this machine is one of trusted_proxies itself)`)
    const advice = `let the proxy set ${header} itself: proxy_set_header ${header} $remote_addr in nginx`
    return problem('callers', `can pose as any address: the proxy passes on what they write into ${header}`, advice)
  }
  if (isPublic(plain)) return ok('callers', `are known by their addresses (ours is ${plain})`)
  if (isTrusted)
    return skipped('callers', 'cannot be distinguished from here: run "hearth doctor --outside" on another machine')
  const advice = `if that is your proxy, add it to trusted_proxies, and let it set ${header}; else limits count everybody as one`
  return warning('callers', `all seem to be ${plain}`, advice)
}

const isPublic = createAddressGuard([])

function objectIn(answer: HttpAnswer | undefined): JsonObject {
  try {
    const value = answer && readJson(answer.body).value
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
