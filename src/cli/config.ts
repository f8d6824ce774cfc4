import { parseArgs } from 'node:util'
import { ConfigError } from '../config/load.ts'
import { printConfig } from '../config/render.ts'
import { CONFIG_OPTIONS, type Command, configFile, EXIT, readConfig, UsageError } from './command.ts'
import { showDifferences } from './config-diff.ts'
import { startProblems } from './serve/start-problems.ts'

export const configCommand: Command = {
  usage: `check | print | diff [--running] [--json] [--config FILE] [--set KEY=VALUE]...

  check   names every problem that would end a start, with its file and line, or says that there is none
  print   shows every value in force and where it comes from; secrets are hidden
  diff    shows the options whose value is not the default; secrets are hidden
  --running
          of the running server: what its configuration would change now, and whether that needs a restart
  --json  for programs`,

  async run(host, words) {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: { ...CONFIG_OPTIONS, running: { type: 'boolean' }, json: { type: 'boolean' } },
      allowPositionals: true,
    })
    const [action, ...rest] = positionals
    const isKnown = action === 'check' || action === 'print' || action === 'diff'
    if (!isKnown || rest.length > 0) throw new UsageError('say "check", "print" or "diff"')
    const loaded = readConfig(host, values)
    if (action === 'diff') {
      host.print(await showDifferences(host, loaded, values))
      return EXIT.ok
    }
    const problems = await startProblems(loaded)
    if (problems.length > 0) throw new ConfigError(problems)
    const file = configFile(host, values) ?? 'no file; defaults and environment'
    host.print(action === 'print' ? printConfig(loaded) : `The configuration is good (${file}).`)
    return EXIT.ok
  },
}
