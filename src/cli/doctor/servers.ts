import { existsSync } from 'node:fs'
import { splitServerName } from '../../core/ids.ts'
import { isObject, type JsonObject, readJson } from '../../core/json.ts'
import { createDiscovery, type ServerTarget } from '../../outbound/discovery.ts'
import type { HttpAnswer } from '../../outbound/http.ts'
import { createWellKnown } from '../../outbound/well-known.ts'
import { loadSigningKey, signingKeyPath } from '../serve/signing-key-file.ts'
import { hasAddress } from './addresses.ts'
import { type Examination, type Finding, ok, problem, skipped, warning } from './finding.ts'
import { certificateOf, MAX_BYTES, TIMEOUT_MS, unreachable } from './reach.ts'

/** Checks how other homeservers find this one, and that they reach this server and no other. */
export async function examineServers(examination: Examination): Promise<readonly Finding[]> {
  const { client, names, config, now } = examination
  const wellKnown = createWellKnown({ client, now, dialects: ['matrix', 'proto'] })
  const discovery = createDiscovery({ names, wellKnown, now, random: Math.random })
  const { targets, steps } = await discovery.find(config.server_name)
  if (targets.length === 0) {
    const advice = 'correct that record at your DNS provider: other servers do not come'
    return [await delegation(examination, wellKnown.delegateOf), problem('discovery', steps.join('; '), advice)]
  }
  const found = await Promise.all(targets.map((target) => examineTarget(target, examination)))
  return [await delegation(examination, wellKnown.delegateOf), ok('discovery', steps.join('; ')), ...found.flat()]
}

async function delegation(
  examination: Examination,
  delegateOf: (host: string) => Promise<string | undefined>,
): Promise<Finding> {
  const { config } = examination
  const subject = '/.well-known/matrix/server'
  const { host, port } = splitServerName(config.server_name) ?? { host: config.server_name, port: undefined }
  if (port !== undefined) return ok(subject, 'is not asked for: server_name says the port')
  if (!(await hasAddress(examination, host))) return skipped(subject, `${host} has no address`)
  const wanted = config.well_known.server
  const delegate = await delegateOf(host)
  if (delegate === wanted) return ok(subject, wanted === undefined ? 'is not needed' : `leads to ${wanted}`)
  if (wanted === undefined) {
    const advice = `set well_known.server to ${delegate}, if that is where this server is, so that Hearth says the same`
    return warning(subject, `leads to ${delegate}, and well_known.server is not set`, advice)
  }
  const advice = `let the web server of https://${host} pass ${subject} on to Hearth (--proxy shows how)`
  return problem(
    subject,
    `${delegate === undefined ? 'is not there' : `leads to ${delegate}`}; it should lead to ${wanted}`,
    advice,
  )
}

async function examineTarget({ origin, via }: ServerTarget, examination: Examination): Promise<readonly Finding[]> {
  const { client, config, now } = examination
  const place = `${via.host}:${via.port}`
  if (!(await hasAddress(examination, via.host))) {
    const isSaid = via.host === splitServerName(config.server_name)?.host
    return [isSaid ? skipped(place, 'has no address') : problem(place, 'has no address in DNS', 'correct it there')]
  }
  const url = `${origin}/_matrix/key/v2/server`
  const answer = await client.request({ method: 'GET', url, via, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES })
  if (!answer.ok) {
    const finding = unreachable(place, answer, place)
    const isUsual = via.port === 8448 && answer.kind === 'connect' && config.well_known.server === undefined
    const host = splitServerName(config.server_name)?.host
    return [isUsual ? { ...finding, advice: `open port 8448, or set well_known.server to ${host}:443` } : finding]
  }
  return [
    await whoAnswers(answer, place, examination),
    ...certificateOf(answer, `certificate of ${new URL(origin).hostname}`, now()),
  ]
}

async function whoAnswers(answer: HttpAnswer, place: string, { config }: Examination): Promise<Finding> {
  const advice = 'let the proxy pass /_matrix on to this Hearth (--proxy shows how)'
  const { server_name, verify_keys } = objectIn(answer)
  if (answer.status !== 200 || typeof server_name !== 'string') {
    return problem(place, `answers ${answer.status} to /_matrix/key/v2/server, with no keys`, advice)
  }
  if (server_name !== config.server_name) return problem(place, `is the server of ${server_name}`, advice)
  if (!existsSync(signingKeyPath(config.data_dir))) return ok(place, `answers as ${server_name}`)
  const { keyId, publicKey } = (await loadSigningKey(config.data_dir)).current
  const key = isObject(verify_keys) ? verify_keys[keyId] : undefined
  if (isObject(key) && key.key === publicKey) return ok(place, `answers as ${server_name}, with our key ${keyId}`)
  return problem(place, `answers as ${server_name}, with another key than ${keyId} of ${config.data_dir}`, advice)
}

function objectIn({ body }: HttpAnswer): JsonObject {
  try {
    const { value } = readJson(body)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
