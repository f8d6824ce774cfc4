import { parseArgs } from 'node:util'
import { ConfigError } from '../config/load.ts'
import { printConfig } from '../config/render.ts'
import { CONFIG_OPTIONS, type Command, configFile, EXIT, readConfig, UsageError } from './command.ts'
import { startProblems } from './serve/start-problems.ts'

export const configCommand: Command = {
  usage: `check | print [--config FILE] [--set KEY=VALUE]...

  check   names every problem that would end a start, with its file and line, or says that there is none
  print   shows every value in force and where it comes from; secrets are hidden`,

  async run(host, words) {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: CONFIG_OPTIONS,
      allowPositionals: true,
    })
    const [action, ...rest] = positionals
    if ((action !== 'check' && action !== 'print') || rest.length > 0) throw new UsageError('say "check" or "print"')
    const loaded = readConfig(host, values)
    const problems = await startProblems(loaded)
    if (problems.length > 0) throw new ConfigError(problems)
    const file = configFile(host, values) ?? 'no file; defaults and environment'
    host.print(action === 'print' ? printConfig(loaded) : `The configuration is good (${file}).`)
    return EXIT.ok
  },
}
