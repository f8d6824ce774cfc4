import { expect, test } from 'vitest'
import { joinMetrics } from '../../../../src/cli/serve/nodes/node-metrics.ts'

const text = (count: number, help = 'Requests.') => `# HELP requests_total ${help}
# TYPE requests_total counter
requests_total{method="GET",path="a } b"} ${count}
requests_total{method="PUT"} 1

# HELP lag_seconds Lag.
# TYPE lag_seconds gauge
lag_seconds 0.5
`

test('values bear the number of their node, and stand with others of their name', () => {
  const joined = joinMetrics(
    new Map([
      [1, text(7)],
      [3, `${text(8, 'Other words.')}# HELP own Own.\n# TYPE own gauge\nown 1\n`],
    ]),
  )
  expect(joined.split('\n')).toEqual([
    '# HELP requests_total Requests.',
    '# TYPE requests_total counter',
    'requests_total{node="1",method="GET",path="a } b"} 7',
    'requests_total{node="1",method="PUT"} 1',
    'requests_total{node="3",method="GET",path="a } b"} 8',
    'requests_total{node="3",method="PUT"} 1',
    '# HELP lag_seconds Lag.',
    '# TYPE lag_seconds gauge',
    'lag_seconds{node="1"} 0.5',
    'lag_seconds{node="3"} 0.5',
    '# HELP own Own.',
    '# TYPE own gauge',
    'own{node="3"} 1',
    '',
  ])
})

test('what the first node has no values of is described once', () => {
  const head = '# HELP rare Rare.\n# TYPE rare gauge\n'
  const texts = new Map([
    [1, head],
    [2, `${head}rare{kind="x"} 1\n`],
    [3, `${head}rare{kind="x"} 2\n`],
  ])
  expect(joinMetrics(texts)).toBe(`${head}rare{node="2",kind="x"} 1\nrare{node="3",kind="x"} 2\n`)
  expect(joinMetrics(new Map())).toBe('')
})
