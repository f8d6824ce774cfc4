import { spawn } from 'node:child_process'
import { constants, setPriority } from 'node:os'

/**
 * `npm run check`: all that decides whether a change may land. The tests wait for a quarter of their time, for timers and answers. In that
 * time what only reads files is done, one thing after another, and gives way to the tests. The first failure of it ends the tests too.
 */
const CHECKS = [['typecheck'], ['lint'], ['docs', '--', '--check']]

const running = new Set()
let isStopped = false

function start(command, words, stdio) {
  const child = spawn(command, words, { stdio })
  let output = ''
  running.add(child)
  child.once('close', () => running.delete(child))
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? 1, output }))
  })
  return { child, ended }
}

async function checkFiles() {
  for (const words of CHECKS) {
    if (isStopped) break
    const { code, output } = await start('npm', ['run', '--silent', ...words], ['ignore', 'pipe', 'pipe']).ended
    if (code !== 0 && !isStopped) return { code, report: `\nnpm run ${words.join(' ')} failed:\n\n${output}` }
  }
  return { code: isStopped ? 1 : 0, report: '' }
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    isStopped = true
    for (const child of running) child.kill(signal)
  })
}
const built = await start('node', ['scripts/build.mjs'], 'inherit').ended
if (built.code !== 0) process.exit(built.code)
const tests = start('vitest', ['run', ...process.argv.slice(2)], 'inherit')
// What is started from here on gives way.
setPriority(constants.priority.PRIORITY_LOW)
const checking = checkFiles()
checking.then(({ code }) => code !== 0 && !isStopped && tests.child.kill())
const [checked, tested] = await Promise.all([checking, tests.ended])
process.stderr.write(checked.report)
process.exitCode = checked.code || tested.code
