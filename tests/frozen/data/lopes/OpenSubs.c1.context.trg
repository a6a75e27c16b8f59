La lampe est vieille .
La lampe est vieille .


La maison .
La maison .
