import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Makes dist/ of src/ unless that was done for the very same files: a later `npm start` does not wait. The program becomes a few files, one
 * for each thing that is loaded on demand: reading a thousand small ones would take most of the time of a start.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = join(root, 'dist/.built')
const sources = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
const inputs = [
  ...sources,
  ...['package-lock.json', 'scripts/build.mjs', 'scripts/build-console.mjs'].map((name) => join(root, name)),
]
const print = createHash('sha256')
for (const file of inputs.sort()) {
  const { size, mtimeMs } = statSync(file)
  print.update(`${file} ${size} ${mtimeMs}\n`)
}
const wanted = print.digest('hex')

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  const { build } = await import('esbuild')
  const { buildConsole } = await import('./build-console.mjs')
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  await build({
    entryPoints: [join(root, 'src/main.ts')],
    outdir: join(root, 'dist'),
    // As deep as the sources are, for what is found beside them: migrations and templates.
    chunkNames: 'parts/[name]-[hash]',
    bundle: true,
    splitting: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
    sourcemap: true,
    // The engine keeps the sources in memory: without indentation, a megabyte less. Lines stay short enough for stack traces.
    minifyWhitespace: true,
    lineLimit: 160,
    logLevel: 'warning',
  })
  // The first request of a server loads it, and reading its many files one by one takes three times as long.
  await build({
    entryPoints: [fileURLToPath(import.meta.resolve('ajv'))],
    outfile: join(root, 'dist/parts/ajv.cjs'),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    minifyWhitespace: true,
    lineLimit: 160,
    logLevel: 'warning',
  })
  await buildConsole()
  writeFileSync(stamp, wanted)
}
