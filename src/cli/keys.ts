import { parseArgs } from 'node:util'
import type { Config } from '../config/schema.ts'
import { withAdministration } from './administration.ts'
import { CONFIG_OPTIONS, type Command, EXIT, type Host, readConfig, UsageError } from './command.ts'
import { ensureDataDirectory } from './serve/data-directory.ts'
import { loadSigningKey, newSigningKeyLine, signingKeyPath } from './serve/signing-key-file.ts'

export const keysCommand: Command = {
  usage: `show | rotate | generate [--config FILE] [--set KEY=VALUE]...

  show       prints the key's id and its public half, and those of keys that were in use before; makes the key if the
             server has none yet
  rotate     puts a new key into use at once, while the server runs or not. The one before is published as out of use,
             so that what it signed stays good; of it the public half alone is kept
  generate   prints a new key for a signing.key file, and changes nothing`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: CONFIG_OPTIONS, allowPositionals: true })
    const [action, ...rest] = positionals
    const isKnown = action === 'show' || action === 'rotate' || action === 'generate'
    if (!isKnown || rest.length > 0) throw new UsageError('say "show", "rotate" or "generate"')
    if (action === 'generate') {
      host.print(newSigningKeyLine().trimEnd())
      return EXIT.ok
    }
    const { config } = readConfig(host, values)
    await (action === 'show' ? show(host, config) : rotate(host, config))
    return EXIT.ok
  },
}

async function show(host: Host, config: Config): Promise<void> {
  await ensureDataDirectory(config.data_dir, host.uid)
  const { current, former } = await loadSigningKey(config.data_dir)
  host.print(`${current.keyId} ${current.publicKey}`)
  for (const { keyId, publicKey, expiredTs } of former) {
    host.print(`${keyId} ${publicKey} (until ${new Date(expiredTs).toISOString()})`)
  }
  host.print(`(secret half in ${signingKeyPath(config.data_dir)})`)
}

async function rotate(host: Host, config: Config): Promise<void> {
  const path = '/_hearth/admin/v1/signing_key/rotate'
  const { key_id, public_key, former_key_id } = await withAdministration(host, config, ({ call }) => call('POST', path))
  host.print(`${key_id} ${public_key}\n(secret half in ${signingKeyPath(config.data_dir)})`)
  host.print(`It is in use, and what ${former_key_id} signed stays good. Keep a copy of the file in a safe place.`)
}
