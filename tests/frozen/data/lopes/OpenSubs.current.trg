Elle est rouge .
Il est rouge .
Où est-il ?
Où est-elle ?
Elle est là .
Il est là .
