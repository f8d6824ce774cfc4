import { Type } from '../core/shapes.ts'
import { integer, OF_NODE, port, section, text } from './parts.ts'

export const clusterSection = section(
  'Several processes that run one server. For now one of them serves, and the others stand by to take its place.',
  {
    nodes: integer(
      'How many processes this one starts beside each other on this machine. They share its ports and its Postgres: one serves, and another takes its place at once when that one ends. Each needs memory of its own, 150 MB or more.',
      1,
      1,
      64,
    ),
    secret: Type.Optional(
      text(
        'Any long random text, the same for all nodes: with it, a process whose `database.url` another one uses already stands by. Without it, that process is refused. Not needed for the nodes of one machine (`cluster.nodes`).',
        { secret: true, minLength: 32, example: 'what "openssl rand -base64 33" prints' },
      ),
    ),
    host: text(
      'The address of this machine at which other nodes reach it, and on which it listens for them. Nobody else has to reach it; what nodes say there is not encrypted.',
      { default: '127.0.0.1', minLength: 1 },
    ),
    port: port(
      'The port for other nodes; 0 takes a free one. With `cluster.nodes` and a secret it is that of the first one, and the others take those after it.',
      8010,
    ),
  },
  OF_NODE,
)
