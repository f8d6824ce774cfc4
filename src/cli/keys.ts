import { parseArgs } from 'node:util'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { ensureDataDirectory } from './data-directory.ts'
import { loadSigningKey, newSigningKeyLine, signingKeyPath } from './signing-key-file.ts'

export const keysCommand: Command = {
  usage: `show | generate [--config FILE] [--set KEY=VALUE]...

  show       prints the key's id and its public half; makes the key if the server has none yet
  generate   prints a new key for a signing.key file, and changes nothing`,

  async run(host, words) {
    const { values, positionals } = parseArgs({ args: [...words], options: CONFIG_OPTIONS, allowPositionals: true })
    const [action, ...rest] = positionals
    if ((action !== 'show' && action !== 'generate') || rest.length > 0)
      throw new UsageError('say "show" or "generate"')
    if (action === 'generate') {
      host.print(newSigningKeyLine().trimEnd())
      return EXIT.ok
    }
    const { config } = readConfig(host, values)
    await ensureDataDirectory(config.data_dir, host.uid)
    const { keyId, publicKey } = await loadSigningKey(config.data_dir)
    host.print(`${keyId} ${publicKey}\n(secret half in ${signingKeyPath(config.data_dir)})`)
    return EXIT.ok
  },
}
