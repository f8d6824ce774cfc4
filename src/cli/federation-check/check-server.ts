import type { ServerName } from '../../core/ids.ts'
import { DIALECTS } from '../../core/paths.ts'
import { compileServerPolicy, EVERY_SERVER_WELCOME } from '../../core/server-policy.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import { createDiscovery, type DiscoveredServer } from '../../outbound/discovery.ts'
import { createFederation, type Federation } from '../../outbound/federation.ts'
import { signerOf } from '../../outbound/outbound.ts'
import { createWellKnown } from '../../outbound/well-known.ts'
import { type Examination, type Finding, ok, problem, type Section, skipped } from '../doctor/finding.ts'
import { checkKeys, checkTrust } from './answers.ts'
import { checkAddresses, checkTarget, checkWellKnown } from './way.ts'

export interface ServerCheck extends Examination {
  /** This server's key; without one, signed requests are not checked. */
  readonly signingKey: SigningKey | undefined
}

/** Checks each step of the way to another server, so that the first wrong step shows. */
export async function checkServer(server: ServerName, check: ServerCheck): Promise<readonly Section[]> {
  const { client, names, config, now } = check
  if (server === config.server_name) {
    const text = 'is this server itself; "doctor" looks at the way to it'
    return [{ title: 'The way there', findings: [skipped(server, text)] }]
  }
  const wellKnown = createWellKnown({ client, now, dialects: DIALECTS })
  const discovery = createDiscovery({ names, wellKnown, now, random: Math.random })
  const federation = createFederation({
    ...{ client, discovery, dialects: DIALECTS, policy: EVERY_SERVER_WELCOME },
    sign: check.signingKey ? signerOf(config.server_name, check.signingKey) : () => '',
  })
  const found = await discovery.find(server)
  const reached = await Promise.all(found.targets.map((target) => checkTarget(target, check)))
  const isThere = reached.flat().some(({ verdict, subject }) => subject === 'version' && verdict === 'ok')
  return [
    { title: 'Whether they may', findings: [policyOf(server, check)] },
    { title: 'Where the name leads', findings: await nameFindings(server, found, check) },
    { title: 'What is there', findings: reached.flat() },
    ...(isThere ? await answersOf(server, federation, check) : []),
  ]
}

function policyOf(server: ServerName, { config }: ServerCheck): Finding {
  const refusal = compileServerPolicy(config.federation, config.server_name).refusalOf(server)
  if (refusal === undefined) return ok('federation', `nothing here shuts ${server} out`)
  return problem('federation', refusal, 'change that option where the two are to talk; what follows is how it would be')
}

async function nameFindings(
  server: ServerName,
  { targets, steps }: DiscoveredServer,
  check: ServerCheck,
): Promise<readonly Finding[]> {
  const advice = 'its operator has to correct that record, or to remove it'
  const led = targets.length > 0 ? ok('discovery', steps.join('; ')) : problem('discovery', steps.join('; '), advice)
  const hosts = [...new Set(targets.map(({ via }) => via.host))]
  return [
    ...(await checkWellKnown(server, check)),
    led,
    ...(await Promise.all(hosts.map((host) => checkAddresses(host, check)))),
  ]
}

async function answersOf(server: ServerName, federation: Federation, check: ServerCheck): Promise<readonly Section[]> {
  const keys = await checkKeys(server, federation, check.now())
  return [
    { title: 'Its keys', findings: keys },
    { title: 'Whether it believes us', findings: [await trust(server, federation, check)] },
  ]
}

function trust(server: ServerName, federation: Federation, check: ServerCheck): Promise<Finding> | Finding {
  const { config, signingKey } = check
  if (signingKey === undefined) {
    return skipped('signature', `there is no signing key in ${config.data_dir}: run this where the server runs`)
  }
  return checkTrust(server, federation, config.server_name)
}
