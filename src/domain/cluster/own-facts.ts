import { createHmac } from 'node:crypto'
import type { Config } from '../../config/schema.ts'
import type { NodeFacts } from '../../store/cluster/nodes.ts'
import type { Random } from '../clock.ts'
import type { OwnSigningKey } from '../federation/own-signing-key.ts'
import type { IdentityKeyRing } from '../identity/keys.ts'
import { filePlaceOf } from './file-place.ts'
import { type SharedValues, settingsOf } from './node-settings.ts'

/** What this process says of itself to the other nodes. Keys and settings are those in use at the moment when they are read. */
export async function ownFacts(parts: {
  readonly config: Config
  readonly sharedValues: SharedValues
  /** Where it listens for other nodes; alone, where it listens for clients. */
  readonly address?: string | undefined
  readonly signingKey: Pick<OwnSigningKey, 'keyId' | 'publicKey'>
  readonly identityKeys: Pick<IdentityKeyRing, 'current'>
  readonly version: string
  readonly random: Random
  /** The name of this process; a random one by default. */
  readonly holder?: string | undefined
}): Promise<NodeFacts> {
  const { config, signingKey, identityKeys, version, random } = parts
  const { secret } = config.cluster
  // An identity service alone has no files.
  const hasFiles = secret !== undefined && config.roles.includes('client')
  const files = hasFiles ? await filePlaceOf(config, random) : ''
  const settings = secret === undefined ? () => '{}' : settingsOf(config, parts.sharedValues, secret)
  return {
    holder: parts.holder ?? random.bytes(8).toString('hex'),
    // Where a command that works in place of a server listens, nobody does: nothing may be passed on to it.
    address: parts.address ?? (secret === undefined ? `${config.listen.host}:${config.listen.port}` : ''),
    release: version,
    get keys() {
      return `${signingKey.keyId} ${signingKey.publicKey} ${identityKeys.current.publicKey}`
    },
    get settings() {
      return settings()
    },
    files,
    cluster: secret === undefined ? undefined : proofOf(secret, config.server_name),
  }
}

/** Shows that two nodes have the same secret, and tells nobody which. */
function proofOf(secret: string, serverName: string): string {
  return createHmac('sha256', secret).update(`hearth cluster ${serverName}`).digest('base64url')
}
