import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { exampleYaml } from '../config/render.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { ensureDataDirectory } from './serve/data-directory.ts'
import { loadSigningKey } from './serve/signing-key-file.ts'

export const initCommand: Command = {
  usage: `[SERVER_NAME] [--config FILE]

  SERVER_NAME   the name after the colon in user ids, such as example.org
  --config      the file to write, hearth.yaml unless said otherwise; one that is there is left alone`,

  async run(host, words) {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: { config: CONFIG_OPTIONS.config },
      allowPositionals: true,
    })
    const [serverName, ...rest] = positionals
    if (rest.length > 0) throw new UsageError(`"${rest[0]}" is not understood`)
    const path = resolve(host.directory, values.config ?? 'hearth.yaml')
    const flags = serverName === undefined ? [] : [`server_name=${serverName}`]
    const { config } = readConfig({ ...host, env: {} }, { set: flags })
    await writeFile(path, exampleYaml().replace(/^#server_name: .*$/m, `server_name: ${config.server_name}`), {
      flag: 'wx',
    }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST' ? new Error(`${path} is there already; it is left as it is`) : error
    })
    const written = readConfig(host, { config: path }).config
    await ensureDataDirectory(written.data_dir, host.uid)
    const { current } = await loadSigningKey(written.data_dir)
    host.print(
      `Wrote ${path}\nSigning key ${current.keyId} in ${written.data_dir}\nStart the server with: hearth serve --config ${path}`,
    )
    return EXIT.ok
  },
}
