import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Compiles src/ to dist/ unless that was done for the very same files: a later `npm start` does not wait for the compiler. */
const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = join(root, 'dist/.built')
const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
const inputs = [
  ...sources,
  ...['tsconfig.json', 'tsconfig.build.json', 'package-lock.json'].map((name) => join(root, name)),
]
const print = createHash('sha256')
for (const file of inputs.sort()) {
  const { size, mtimeMs } = statSync(file)
  print.update(`${file} ${size} ${mtimeMs}\n`)
}
const wanted = print.digest('hex')

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.build.json')], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
  mkdirSync(join(root, 'dist'), { recursive: true })
  writeFileSync(stamp, wanted)
}
