import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { exampleYaml } from '../config/render.ts'
import { CONFIG_OPTIONS, type Command, EXIT, readConfig, UsageError } from './command.ts'
import { ensureDataDirectory } from './serve/data-directory.ts'
import { loadSigningKey } from './serve/signing-key-file.ts'

export const initCommand: Command = {
  usage: `[SERVER_NAME] [--config FILE] [--data-dir DIRECTORY]

  SERVER_NAME   the name after the colon in user ids, such as example.org
  --config      the file to write; else $HEARTH_CONFIG, else hearth.yaml here; one that is there is left alone
  --data-dir    where keys, media and the database are to be, written into the file as data_dir`,

  async run(host, words) {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: { config: CONFIG_OPTIONS.config, 'data-dir': { type: 'string' } },
      allowPositionals: true,
    })
    const [serverName, ...rest] = positionals
    if (rest.length > 0) throw new UsageError(`"${rest[0]}" is not understood`)
    const path = resolve(host.directory, values.config || host.env.HEARTH_CONFIG || 'hearth.yaml')
    const dataDir = values['data-dir']
    const set = {
      ...(serverName === undefined ? {} : { server_name: serverName }),
      ...(dataDir === undefined ? {} : { data_dir: resolve(host.directory, dataDir) }),
    }
    // Checked before anything is written.
    const flags = Object.entries(set).map(([key, value]) => `${key}=${value}`)
    const { config } = readConfig({ ...host, env: {} }, { set: flags })
    let text = exampleYaml().replace(/^#server_name: .*$/m, () => `server_name: ${config.server_name}`)
    if (dataDir !== undefined)
      text = text.replace(/^#data_dir: .*$/m, () => `data_dir: ${JSON.stringify(config.data_dir)}`)
    await writeFile(path, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
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
