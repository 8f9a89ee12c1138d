"""A Ray cluster of two nodes on this machine, in a process that ends it: prints its address, then obeys lines.

`add` starts a third node; `kill` kills a node (-9) that is not the head; the end of the input ends all.
"""

import sys

from ray.cluster_utils import Cluster

_NODE = {"num_cpus": 2, "include_dashboard": False}

cluster = Cluster(initialize_head=True, head_node_args=_NODE, shutdown_at_exit=True)
nodes = [cluster.add_node(num_cpus=2)]
cluster.wait_for_nodes()
print(cluster.address, flush=True)  # noqa: T201  whoever started this reads it
for line in sys.stdin:
    if line == "add\n":
        nodes.append(cluster.add_node(num_cpus=2))
    else:
        cluster.remove_node(nodes.pop(), allow_graceful=False)
    print("done", flush=True)  # noqa: T201  likewise
cluster.shutdown()
